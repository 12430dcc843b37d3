import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { plantScopes, type Scope } from '../contract/scopes.ts'
import type { Store, TokenRecord } from '../store/store.ts'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
export const tokenPrefix = 'plst_'
/** 30 base62 characters are 178 bits. */
const secretLength = 30
/** 6 base62 characters hold every CRC32. */
const checksumLength = 6
const wellFormed = new RegExp(`^${tokenPrefix}[0-9A-Za-z]{${secretLength + checksumLength}}$`)

/** A new token: prefix, random part, checksum. */
export function newToken(): string {
  const body = tokenPrefix + randomText(secretLength)
  return body + checksumOf(body)
}

/** A new id, by which operators refer to a token. It is not a secret. */
export function newTokenId(): string {
  return `tok_${randomText(12)}`
}

/** Whether the text has the form of a token. Catches typos without asking the store. */
export function isWellFormed(token: string): boolean {
  return (
    wellFormed.test(token) &&
    checksumOf(token.slice(0, -checksumLength)) === token.slice(-checksumLength)
  )
}

/** The hash that the store keeps. Tokens are random, so a plain hash is enough. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function randomText(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
}

function checksumOf(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let count = 0; count < checksumLength; count++) {
    digits = alphabet[rest % alphabet.length] + digits
    rest = Math.trunc(rest / alphabet.length)
  }
  return digits
}

export interface TokenRequest {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly lifetimeMs: number | undefined
}

/** A new token. Only its hash is stored, so it cannot be shown again. */
export interface IssuedToken {
  readonly token: string
  readonly record: TokenRecord
}

/** Makes a token and stores its hash. */
export async function issueToken(
  store: Store,
  request: TokenRequest,
  now = Date.now(),
): Promise<IssuedToken> {
  const issued = buildToken(request, now)
  await store.addToken(issued.record)
  return issued
}

/** What the first token of a store may do. */
export const firstTokenRequest = { name: 'first', scopes: plantScopes, lifetimeMs: undefined }

/** Makes the first token of an empty store. Of several processes that start, only one makes it. */
export async function issueFirstToken(store: Store): Promise<IssuedToken | undefined> {
  // Looks first: a service that needs no token must also start on a full disk.
  if ((await store.listTokens()).length > 0) return undefined
  const issued = buildToken(firstTokenRequest, Date.now())
  return (await store.addFirstToken(issued.record)) === 'added' ? issued : undefined
}

function buildToken(request: TokenRequest, createdAt: number): IssuedToken {
  const token = newToken()
  const record = {
    id: newTokenId(),
    hash: hashToken(token),
    name: request.name,
    scopes: request.scopes,
    createdAt,
    expiresAt: request.lifetimeMs && createdAt + request.lifetimeMs,
    revokedAt: undefined,
    lastUsedAt: undefined,
    lastFour: token.slice(-4),
  }
  return { token, record }
}
