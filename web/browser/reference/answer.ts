import { element, fill } from '../dom/element.ts'
import { toCode } from './rich-text.ts'

/** A longer body is cut. */
const maxShownBytes = 1024 * 1024

/** Sends a request and shows its answer as it comes: status, headers and body, every digit. */
export async function showAnswer(
  target: HTMLElement,
  url: string,
  init: RequestInit & { readonly signal: AbortSignal },
): Promise<void> {
  const startedAt = performance.now()
  let response: Response
  try {
    // Not through the client, which would hide what is on the wire.
    response = await fetch(url, { ...init, cache: 'no-store', redirect: 'manual' })
  } catch {
    const reason = init.signal.aborted ? 'Stopped.' : 'The service does not answer.'
    return fill(target, element('p', { class: 'refusal' }, reason))
  }
  const tookMs = Math.round(performance.now() - startedAt)
  const code = element('code')
  const note = element('p', { class: 'note' })
  const fields = [...response.headers].map((field) => field.join(': ')).join('\n')
  fill(
    target,
    element(
      'p',
      { class: 'status', 'data-ok': response.ok },
      `${response.status} ${response.statusText}`,
      element('span', { class: 'note' }, ` ${tookMs} ms`),
    ),
    toCode('Headers of the answer', fields),
    toCode('Body of the answer', code),
    note,
  )
  await showBody(response, code, note, init.signal)
}

async function showBody(
  { body }: Response,
  code: HTMLElement,
  note: HTMLElement,
  signal: AbortSignal,
): Promise<void> {
  if (body === null) return
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let shownBytes = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      code.append(decoder.decode(value, { stream: true }))
      shownBytes += value.byteLength
      if (shownBytes > maxShownBytes) {
        fill(note, 'The rest is not shown.')
        await reader.cancel()
        return
      }
    }
  } catch {
    fill(note, signal.aborted ? 'Stopped.' : 'The connection was lost.')
  }
}
