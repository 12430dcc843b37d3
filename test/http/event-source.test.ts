import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EventSource } from 'eventsource'
import { browserMissing, startBrowser } from '../support/browser.ts'
import { sqlite } from '../support/engines.ts'
import { releaseAfterTest } from '../support/release.ts'
import { authorized, startService, type TestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { openSocket } from '../support/wire.ts'

/** What an EventSource has seen so far. */
interface Seen {
  /** How often it was connected. */
  readonly opens: number
  /** How often it lost a connection, or did not get one. */
  readonly errors: number
  /** Whether it has given up for good. */
  readonly isClosed: boolean
  readonly ids: readonly number[]
}

type Follow = (url: string) => Promise<() => Promise<Seen>>

/** That of the package `eventsource`. */
const followWithLibrary: Follow = async (url) => {
  const seen = { opens: 0, errors: 0, isClosed: false, ids: [] as number[] }
  const source = new EventSource(`${url}/events`, {
    fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...authorized } }),
  })
  releaseAfterTest(() => source.close())
  source.onopen = () => {
    seen.opens++
  }
  source.onerror = () => {
    seen.errors++
  }
  source.addEventListener('plant.created', ({ data }) => {
    seen.ids.push(JSON.parse(data).plant.id)
  })
  return async () => ({ ...seen, isClosed: source.readyState === EventSource.CLOSED })
}

/** That of Chromium. It cannot send a token by itself, so the browser adds it to each request. */
const followWithBrowser: Follow = async (url) => {
  let close = async () => {}
  // Registered before the first wait: Playwright's promises lead out of the context of the test.
  releaseAfterTest(() => close())
  const browser = await startBrowser()
  const context = await browser.newContext({ extraHTTPHeaders: authorized })
  close = () => context.close()
  const page = await context.newPage()
  await page.goto(`${url}/healthz`)
  const handle = await page.evaluateHandle((address) => {
    const { EventSource: OwnEventSource } = globalThis as unknown as {
      EventSource: typeof EventSource
    }
    const seen = { opens: 0, errors: 0, isClosed: false, ids: [] as number[] }
    const source = new OwnEventSource(address)
    source.onopen = () => {
      seen.opens++
    }
    source.onerror = () => {
      seen.errors++
      seen.isClosed = source.readyState === OwnEventSource.CLOSED
    }
    source.addEventListener('plant.created', ({ data }) => {
      seen.ids.push(JSON.parse(data).plant.id)
    })
    return seen
  }, `${url}/events`)
  return () => handle.jsonValue()
}

async function create(service: TestService, id: number): Promise<void> {
  assert.equal((await service.create(`{"id":${id},"name":"x"}`)).status, 200)
}

for (const [name, follow, skip] of [
  ['of the package eventsource', followWithLibrary, false],
  ['of a browser', followWithBrowser, browserMissing],
] as const) {
  describe(`an EventSource ${name}`, { skip }, () => {
    it('goes on after a shutdown into which it comes back, and a restart', async () => {
      const url = await sqlite.newUrl()
      const first = await startService(url, { timeouts: { idleGraceMs: 60_000 } })
      const look = await follow(first.url)
      /** Waits for it, and not in vain for a source that has given up. */
      const see = async (what: string, has: (seen: Seen) => boolean) => {
        await waitUntil(async () => {
          const seen = await look()
          return has(seen) || seen.isClosed
        }, what)
        const seen = await look()
        assert.equal(seen.isClosed, false, `it has given up: ${what}`)
        return seen
      }
      await create(first, 1)
      await see('the first event', ({ ids }) => ids.includes(1))

      // While somebody is connected, the service that shuts down answers new connections.
      const busy = openSocket(first.url)
      await waitUntil(() => busy.readyState === 'open', 'somebody is connected')
      const closing = first.close()
      await see('a stream of the service that shuts down', ({ opens }) => opens > 1)
      busy.destroy()
      await closing
      const { errors } = await look()
      await see('a refused connection', (seen) => seen.errors > errors)

      const { port } = new URL(first.url)
      const second = await startService(url, { env: { PORT: port } })
      await create(second, 2)
      const { ids } = await see('the event after the restart', (seen) => seen.ids.includes(2))
      assert.deepEqual(ids, [1, 2])
    })
  })
}
