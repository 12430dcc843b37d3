import { PlantStore, PlantStoreError, type PlantStoreOptions } from '../../client/index.ts'
import { type Environment, WrongConfig } from '../config.ts'
import { type ErrorNumber, Failure } from '../contract/errors.ts'
import { explainErrno } from '../errno.ts'
import { readOperatorToken, readTokenFile } from '../tokens/operator-token.ts'
import { CommandFailed, exitCodes } from './exit.ts'

/** The flags of commands that use a running service instead of a store. */
export interface ServiceFlags {
  readonly url?: string | undefined
  readonly token?: string | undefined
}

export const maxMessageCharacters = 300

/** A running service, and the token for it. */
export interface Service {
  readonly url: string
  readonly token: string
}

/** The service that `--url` names, with the token of a flag or of the environment. */
export function findService({ url, token }: ServiceFlags, env: Environment): Service | undefined {
  const missing = '--url needs a token: set PLANT_STORE_TOKEN or --token.'
  if (url !== undefined) return { url, token: findToken({ token }, env, missing) }
  if (token !== undefined) throw new WrongConfig(['--token needs --url.'])
  return undefined
}

/** The token for a service: of a flag, of a file or of the environment. */
export function findToken(
  { token, tokenFile }: Pick<ServiceFlags, 'token'> & { readonly tokenFile?: string },
  env: Environment,
  missing: string,
): string {
  const found = tokenFile === undefined ? (token ?? findOperatorToken(env)) : readToken(tokenFile)
  if (found === undefined) throw new WrongConfig([missing])
  if (/^[!-~]+$/.test(found)) return found
  throw new WrongConfig(['The token must consist of visible ASCII characters.'])
}

function findOperatorToken(env: Environment): string | undefined {
  const { token, mistake } = readOperatorToken(env.PLANT_STORE_TOKEN, env.PLANT_STORE_TOKEN_FILE)
  if (mistake !== undefined) throw new WrongConfig([mistake])
  return token
}

function readToken(path: string): string {
  try {
    return readTokenFile(path).trim()
  } catch (error) {
    throw new WrongConfig([`--token-file: cannot read ${path}: ${explainErrno(error)}.`])
  }
}

/** A client with options that come from flags. */
export function openClient(options: PlantStoreOptions, urlFlag = 'url'): PlantStore {
  try {
    return new PlantStore(options)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new WrongConfig([`--${error.message.replace(/^url/, urlFlag)}`])
  }
}

/** Why a service failed a command. Returns an error that is not of the client as it is. */
export function explainService(failure: unknown, url: string): unknown {
  if (!(failure instanceof PlantStoreError)) return failure
  // The client throws a lost answer, after which plants may be stored, with the last one as cause.
  const last = failure.cause instanceof PlantStoreError ? failure.cause : failure
  const { status, error } = last
  const message = last.message.slice(0, maxMessageCharacters)
  const isRejected = status === 401 || status === 403
  // Nothing was stored if no request arrived, or the first that did was rejected.
  const number = isUnreachable(last) ? 50301 : isRejected ? error : undefined
  const isFirst = number !== undefined && last === failure
  const options = isFirst ? { cause: new Failure(number as ErrorNumber, message) } : {}
  if (isRejected) {
    const text = `The service rejected the token: ${message}`
    return new CommandFailed(exitCodes.noPermission, text, options)
  }
  const isOurs = error !== undefined || status === undefined
  const what = isOurs ? `The service at ${url}` : url
  return new CommandFailed(exitCodes.inputOutput, `${what} failed: ${message}`, options)
}

/** Whether no connection was made at all. */
export function isUnreachable({ cause }: PlantStoreError): boolean {
  const { code = '' } = Object((cause as Error | undefined)?.cause) as { code?: string }
  return /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/.test(code)
}
