/**
 * Whether the time of a refusal reveals how close a guess is: guesses that share all but the last
 * character with the operator's token, in turn with guesses that share nothing.
 *
 *   npx node bench/experiments/token-timing.ts
 */
import { randomBytes } from 'node:crypto'
import { openStore, type StoreLocation, toStoreLocation } from '../../src/store/open.ts'
import { openTokenVerifier } from '../../src/tokens/verify.ts'
import { median, quantile } from '../figures.ts'

const rounds = 200
const guessesPerRound = 500
const operatorToken = randomBytes(30).toString('base64url')
const store = await openStore(toStoreLocation('sqlite::memory:') as StoreLocation)
const tokens = await openTokenVerifier({ store, operatorToken, onError: () => {} })

const guesses = {
  near: () => `${operatorToken.slice(0, -1)}!`,
  far: () => randomBytes(30).toString('base64url'),
}
const kinds = ['near', 'far'] as const
const timesUs: Record<keyof typeof guesses, number[]> = { near: [], far: [] }
for (let round = 0; round < rounds; round++) {
  for (const kind of kinds) {
    const some = Array.from({ length: guessesPerRound }, guesses[kind])
    const startedAt = performance.now()
    for (const guess of some) await Promise.resolve(tokens.verify(guess)).catch(() => {})
    timesUs[kind].push(((performance.now() - startedAt) * 1_000) / guessesPerRound)
  }
}
for (const kind of kinds) {
  const spread = quantile(timesUs[kind], 0.9) - quantile(timesUs[kind], 0.1)
  const middle = median(timesUs[kind]).toFixed(2)
  console.log(`${kind.padEnd(4)} ${middle} µs, the middle 80 % within ${spread.toFixed(2)} µs`)
}
console.log(`near / far ${(median(timesUs.near) / median(timesUs.far)).toFixed(3)}`)
await tokens.close()
await store.close()
