import type { Summary } from '../../store/copy.ts'
import type { TokenRecord } from '../../store/store.ts'
import { CommandFailed, exitCodes } from '../exit.ts'
import { toCount, toText } from '../progress.ts'

/** Requires that a copy has the plants of its source. */
export function requireSamePlants(source: Summary, copy: Summary): void {
  if (source.plants !== copy.plants) {
    throw different(
      `the source has ${toCount(source.plants, 'plants')}, the destination ${toText(copy.plants)}`,
    )
  }
  if (source.checksum !== copy.checksum) {
    throw different(`the checksums differ: ${source.checksum} and ${copy.checksum}`)
  }
}

/** Requires that a copy has every token of its source, in the same state. */
export function requireSameTokens(
  source: readonly TokenRecord[],
  copy: readonly TokenRecord[],
): void {
  const fingerprints = new Set(copy.map(toFingerprint))
  const missing = source.filter((token) => !fingerprints.has(toFingerprint(token))).length
  if (missing > 0) throw different(`${toCount(missing, 'tokens')} missing or different`)
}

/** The members of a token that must be the same. Its last use is not: services go on noting it. */
function toFingerprint(token: TokenRecord): string {
  const { id, hash, name, scopes, createdAt, expiresAt, revokedAt } = token
  const isRevoked = revokedAt !== undefined
  return JSON.stringify([id, hash.toString('hex'), name, scopes, createdAt, expiresAt, isRevoked])
}

function different(how: string): CommandFailed {
  return new CommandFailed(
    exitCodes.data,
    `The stores differ: ${how}. Copy into an empty store while nothing writes to either.`,
  )
}
