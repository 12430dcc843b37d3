import { Failure } from '../contract/errors.ts'
import type { Scope } from '../contract/operations.ts'
import type { NewPlant, StoredPlant } from '../contract/shapes.ts'

/** Names one state of one plant: random, so that it never comes back, not even from an old backup. */
export type Version = bigint

export interface VersionedPlant extends StoredPlant {
  readonly version: Version
}

/** A token as the store knows it: never the token itself, only its SHA-256. Times are milliseconds since 1970. */
export interface TokenRecord {
  readonly id: string
  readonly hash: Buffer
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  readonly lastUsedAt: number | undefined
}

export interface TokenUse {
  readonly id: string
  readonly at: number
}

/**
 * Where plants and tokens are kept. Each method is one atomic step; a write resolves when it is on disk. Expected
 * outcomes are values; a `Failure` says that the store could not do it, and whether it may have been done.
 */
export interface Store {
  createPlant(plant: NewPlant): Promise<Version | 'exists'>
  getPlant(id: bigint): Promise<VersionedPlant | undefined>

  addToken(token: TokenRecord): Promise<void>
  /** Adds the token only to a store that holds no plant and no token yet. */
  addFirstToken(token: TokenRecord): Promise<'added' | 'not first'>
  findToken(hash: Buffer): Promise<TokenRecord | undefined>
  listTokens(): Promise<TokenRecord[]>
  revokeToken(id: string, at: number): Promise<'revoked' | 'revoked before' | 'unknown'>
  /** Notes when tokens were last used. Told late and in bulk, so it may lag behind. */
  noteTokenUses(uses: readonly TokenUse[]): Promise<void>
  /** A number that changes with every revocation, whichever process made it. */
  tokenRevision(): Promise<bigint>

  /** Whether the queue of waiting writes is full, so that further ones would be refused. */
  isFull(): boolean
  /** Resolves when the store answers. */
  ping(): Promise<void>
  /** Finishes the writes that were accepted, then lets go of the store. */
  close(): Promise<void>
}

/** What an operator wants to know of a store that can go away and come back. */
export interface StoreEvents {
  onLost(reason: unknown): void
  onFound(): void
}

/** The store cannot be used as configured. The message is one line for the operator. */
export class UnusableStore extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options)
    this.name = 'UnusableStore'
  }
}

/** The queue of the store is full: refused at once, so that nobody waits for what cannot be served. */
export function overloaded(): Failure {
  return new Failure(50300, 'The service is overloaded and stored nothing. Try again in a moment.')
}
