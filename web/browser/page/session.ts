import { PlantStoreError } from '../../../client/errors.ts'
import { PlantStore } from '../../../client/plant-store.ts'

interface Watch {
  /** Learns when a stream of events opens, and when it ends. */
  onStream(isOpen: boolean): void
  /** A part of a search was answered. */
  onSearched(): void
}

export type Session = ReturnType<typeof openSession>

/** A token at work: the client that carries it, and what its answers tell about the service. */
export function openSession(token: string, { onStream, onSearched }: Watch) {
  /** Where the service is: the folder of this page, without a slash at the end. */
  const url = new URL('.', location.href).href.replace(/\/$/, '')
  let scopes: readonly string[] = []

  const watchedFetch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (/[?&]name=/.test(String(input)) && response.ok) onSearched()
    scopes = response.headers.get('Token-Scopes')?.split(' ') ?? scopes
    const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream')
    if (!isStream || response.body === null) return response
    onStream(true)
    const { readable, writable } = new TransformStream()
    const end = () => onStream(false)
    response.body.pipeTo(writable).then(end, end)
    return new Response(readable, response)
  }

  return {
    token,
    client: new PlantStore({ url, token, fetch: watchedFetch }),
    url,
    /** Whether the token may write. Known after the first list. */
    mayWrite: (): boolean => scopes.includes('plants:write'),
  }
}

/** Reads what the client has no call for. Rejects as the client does. */
export async function readPath<Content>(
  { url, token }: Session,
  path: string,
  read: (response: Response) => Promise<Content>,
  signal: AbortSignal | null = null,
): Promise<Content> {
  try {
    const headers = { Authorization: `Bearer ${token}` }
    const response = await fetch(url + path, { headers, signal })
    if (!response.ok) throw toRefusal(response.status, await response.text())
    return await read(response)
  } catch (cause) {
    if (cause instanceof PlantStoreError) throw cause
    throw new PlantStoreError('The connection was lost.', { cause })
  }
}

/** The failure that an answer reports. */
export function toRefusal(status: number, text: string): PlantStoreError {
  try {
    const { error, message } = JSON.parse(text)
    return new PlantStoreError(message, { status, error })
  } catch {
    return new PlantStoreError(`The service answered ${status}.`, { status, error: status * 100 })
  }
}
