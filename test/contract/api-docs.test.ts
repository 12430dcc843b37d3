import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { errorNumbers, toStatus } from '../../src/contract/errors.ts'
import { defaultTimeouts, limits } from '../../src/contract/limits.ts'
import { operations } from '../../src/contract/operations.ts'
import { maxWaiting, maxWaitingOnConnection } from '../../src/http/node/client-socket.ts'
import { defaultBounds } from '../../src/store/batcher.ts'

const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')

for (const { method, path } of Object.values(operations)) {
  it(`docs/api.md has a row for ${method} ${path}`, () => {
    assert.ok(page.includes(`\n| \`${method} ${path}\``))
  })
}

describe('the table of error numbers in docs/api.md', () => {
  const rows = [...page.matchAll(/^\| (\d{5}) \| (\d+) \| (.*) \|$/gm)].map(
    ([, number, status, meaning = '']) => ({
      number: Number(number),
      status: Number(status),
      meaning: meaning.trim(),
    }),
  )

  it('has every number of the catalogue, and no other, in ascending order', () => {
    const numbers = rows.map(({ number }) => number)
    assert.deepEqual(numbers, errorNumbers)
  })

  for (const { number, status, meaning } of rows) {
    it(`gives the status of ${number}, and says when it is answered`, () => {
      assert.equal(status, toStatus(number as (typeof errorNumbers)[number]))
      assert.match(meaning, /\w+ \w+/)
    })
  }
})

const kib = (bytes: number) => `${bytes / 1024} KiB`
const mib = (bytes: number) => `${bytes / 1024 ** 2} MiB`
const seconds = (ms: number) => `${ms / 1000} s`
const many = (count: number) => count.toLocaleString('en')
const few = (count: number) => ['no', 'one', 'two', 'three', 'four'][count]
const { headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs } = defaultTimeouts

for (const text of [
  `${many(limits.headerFields)} with ${kib(limits.headerBytes)} in all, complete within ${seconds(headersTimeoutMs)}`,
  `URL of ${kib(limits.urlBytes)}`,
  `${limits.queryPairs} in a query, ${limits.entityTags} entity tags`,
  `${limits.mediaTypeParameters} of a \`Content-Type\``,
  `${many(limits.bodyBytes)} bytes, complete within ${seconds(requestTimeoutMs)}`,
  `${limits.jsonDepth} levels of JSON`,
  `${many(limits.bodyChunks)} chunks, or more if they have ${limits.bodyChunkBytes} bytes`,
  `${limits.underWay} per caller`,
  `counts ${limits.pageWeight}. The others wait for ${seconds(limits.gateWaitMs)}`,
  `| writes waiting for the store | ${many(defaultBounds.queueItems)};`,
  `| connections | ${many(limits.connections)}, or`,
  `An idle one is kept for ${seconds(keepAliveTimeoutMs)}`,
  `${many(maxWaitingOnConnection)} may wait on a connection, ${many(maxWaiting)} in all`,
  `cut after at most ${seconds(2 * defaultTimeouts.stallTimeoutMs)}; beyond ${mib(limits.unreadBytes)}`,
  `${many(limits.bodyBytes + 64)} bytes; a longer one`,
  `After ${many(limits.refusedLines)} refused lines`,
  `${few(limits.imports)} of each at a time, ${few(limits.importsOfToken)} per token`,
  `${defaultTimeouts.importMs / 60_000} minutes each`,
  `sends nothing for ${seconds(requestTimeoutMs)} (40800)`,
  `expand to ${mib(limits.gzipFreeBytes)}, or to ${limits.gzipFactor} times its size`,
  `| pages | about ${mib(limits.pageBytes)},`,
  `examines ${many(limits.examinedPlants)} plants`,
  `${many(limits.eventStreams)}, ${limits.eventStreamsOfToken} per token`,
  `Cut when ${mib(limits.eventBytesWaiting)} waits for its client`,
  `a comment follows every ${seconds(defaultTimeouts.commentMs)}`,
  `${many(limits.keysOfToken)} idempotency keys per token in ${limits.keyLifetimeMs / 3_600_000} hours`,
  `${many(limits.verifiedTokens)} verified tokens are remembered`,
  `waits for the issuer for at most ${seconds(defaultTimeouts.issuerMs)}`,
]) {
  it(`the limits in docs/api.md are those of the service: ${text}`, () => {
    assert.ok(page.replaceAll(/\s+/g, ' ').includes(text))
  })
}
