import { PlantStore } from '../../../client/index.ts'

/** A token at work: the client that carries it, and what its answers tell about the service. */
export interface Session {
  readonly token: string
  readonly client: PlantStore
  /** Where the service is: the folder of this page, without a slash at the end. */
  readonly url: string
  /** Whether the token may write. Known after the first list. */
  mayWrite(): boolean
}

export interface Watch {
  /** Learns of each request whether the service answered it. */
  onReach(isReached: boolean): void
  /** Learns when a stream of events opens, and when it ends. */
  onStream(isOpen: boolean): void
  /** A part of a search was answered. */
  onSearched(): void
}

export function openSession(token: string, { onReach, onStream, onSearched }: Watch): Session {
  const url = new URL('.', location.href).href.replace(/\/$/, '')
  let scopes: readonly string[] = []

  const watchedFetch: typeof fetch = async (input, init) => {
    try {
      const response = await fetch(input, init)
      onReach(true)
      if (/[?&]name=/.test(String(input)) && response.ok) onSearched()
      scopes = response.headers.get('Token-Scopes')?.split(' ') ?? scopes
      const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream')
      if (!isStream || response.body === null) return response
      onStream(true)
      const { readable, writable } = new TransformStream()
      const end = () => onStream(false)
      response.body.pipeTo(writable).then(end, end)
      return new Response(readable, response)
    } catch (error) {
      if (!init?.signal?.aborted) onReach(false)
      throw error
    }
  }

  return {
    token,
    client: new PlantStore({ url, token, fetch: watchedFetch }),
    url,
    mayWrite: () => scopes.includes('plants:write'),
  }
}
