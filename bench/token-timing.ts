/**
 * Whether the time of a refusal tells how near a guess is: guesses that share all but their last character with the
 * operator's token, and guesses that share nothing, in turn. Tokens are compared by their SHA-256, in constant time.
 *
 *   npx node bench/token-timing.ts
 */
import { randomBytes } from 'node:crypto'
import { openStore, type StoreLocation, toStoreLocation } from '../src/store/open.ts'
import { openTokenVerifier } from '../src/tokens/verify.ts'

const rounds = 200
const guessesPerRound = 500
const operatorToken = randomBytes(30).toString('base64url')
const store = await openStore(toStoreLocation('sqlite::memory:') as StoreLocation)
const tokens = await openTokenVerifier({ store, operatorToken, onError: () => {} })

const guesses = {
  near: () => `${operatorToken.slice(0, -1)}!`,
  far: () => randomBytes(30).toString('base64url'),
}
const times: Record<keyof typeof guesses, number[]> = { near: [], far: [] }
for (let round = 0; round < rounds; round++) {
  for (const kind of ['near', 'far'] as const) {
    const some = Array.from({ length: guessesPerRound }, guesses[kind])
    const startedAt = performance.now()
    for (const guess of some) await Promise.resolve(tokens.verify(guess)).catch(() => {})
    times[kind].push(((performance.now() - startedAt) * 1_000) / guessesPerRound)
  }
}
const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] ?? 0
const spread = (values: number[]) =>
  (values[Math.floor(values.length * 0.9)] ?? 0) - (values[Math.floor(values.length * 0.1)] ?? 0)
for (const kind of ['near', 'far'] as const) {
  const middle = median(times[kind])
  console.log(
    `${kind.padEnd(4)} ${middle.toFixed(2)} µs, the middle 80 % within ${spread(times[kind]).toFixed(2)} µs`,
  )
}
console.log(`near / far ${(median(times.near) / median(times.far)).toFixed(3)}`)
await tokens.close()
await store.close()
