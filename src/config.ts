import { quoteWrong, toMs, toNumber } from './contract/setting-values.ts'
import type { AllowedOrigins } from './http/protocol.ts'
import type { RateLimit } from './http/rate-limit.ts'
import type { StoreLocation } from './store/open.ts'
import { locateStore } from './store/open.ts'
import { isIssuerUrl, type TrustedIssuer } from './tokens/issuer.ts'
import { readOperatorToken } from './tokens/operator-token.ts'

/** Where the store is: all that most commands need. */
export interface StoreConfig {
  readonly storeLocation: StoreLocation
  /** Whether a flag or a variable names the store; otherwise it is at the default path. */
  readonly isStoreNamed: boolean
}

/** Where the service listens. */
export interface ListenConfig {
  readonly port: number
  readonly host: string
}

/** Everything that an operator can set. */
export interface Config extends StoreConfig, ListenConfig {
  readonly workers: number
  readonly operatorToken: string | undefined
  readonly operatorTokenFile: string | undefined
  /** Its JSON Web Tokens are accepted besides the tokens of the store. */
  readonly issuer: TrustedIssuer | undefined
  readonly publicUrl: string | undefined
  readonly allowedOrigins: AllowedOrigins
  /** How many requests a token may make; undefined for no limit. */
  readonly rateLimit: RateLimit | undefined
  /** The number of trusted proxies in front, for client addresses in the log. */
  readonly trustedProxies: number
  readonly logLevel: string
  /** Whether systemd's journal keeps what this process prints, unless it prints to a terminal. */
  readonly isUnderSystemd: boolean
  /** How long changes are kept in the journal. */
  readonly journalKeepMs: number | 'off'
  /** The size limit of the journal, whatever the age of its changes. */
  readonly journalMaxBytes: number
}

/** The flags that override a variable. */
export interface Flags {
  readonly port?: string | undefined
  readonly host?: string | undefined
  readonly database?: string | undefined
  readonly workers?: string | undefined
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The configuration is wrong: one line for each mistake. */
export class WrongConfig extends Error {
  readonly mistakes: readonly string[]

  constructor(mistakes: readonly string[]) {
    super(mistakes.join('\n'))
    this.name = 'WrongConfig'
    this.mistakes = mistakes
  }
}

export const defaultDatabaseUrl = 'sqlite:data/plant-store.db'

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** Where the store is. Throws every mistake at once, and reads nothing else. */
export function readStoreConfig(flags: Flags, env: Environment): StoreConfig {
  return readAll(env, (settings) => readStore(flags, env, settings))
}

/** Where the service listens. Throws every mistake at once, and reads nothing else. */
export function readListenConfig(flags: Flags, env: Environment): ListenConfig {
  return readAll(env, (settings) => readListen(flags, settings))
}

/** Everything, for the service. Throws every mistake at once, and changes nothing. */
export function readConfig(flags: Flags, env: Environment): Config {
  return readAll(env, (settings) => readService(flags, env, settings))
}

function readAll<Value>(env: Environment, read: (settings: Settings) => Value): Value {
  const settings = openSettings(env)
  const value = read(settings)
  if (settings.mistakes.length > 0) throw new WrongConfig(settings.mistakes)
  return Object.freeze(value)
}

type Settings = ReturnType<typeof openSettings>

/** Reads variables, and flags that win over them; collects what is wrong. */
function openSettings(env: Environment) {
  const mistakes: string[] = []

  function read<Value>(
    variable: string,
    fallback: Value,
    parse: (text: string) => Value | undefined,
    expected: string,
    flag?: string,
  ): Value {
    const text = flag ?? env[variable]
    if (text === undefined) return fallback
    const value = parse(text)
    if (value !== undefined) return value
    const name = flag === undefined ? variable : `--${variable.toLowerCase()}`
    mistakes.push(`${name} must be ${expected}${quoteWrong(text)}.`)
    return fallback
  }

  function readNumber(variable: string, fallback: number, range: Range, flag?: string): number {
    const expected = `a number from ${range.join(' to ')}`
    return read(variable, fallback, (text) => toNumber(text, ...range), expected, flag)
  }

  return { mistakes, read, readNumber }
}

function readStore(flags: Flags, env: Environment, { mistakes }: Settings): StoreConfig {
  const located =
    flags.database === undefined
      ? locateStore('DATABASE_URL', env.DATABASE_URL ?? defaultDatabaseUrl, env)
      : locateStore('--database', flags.database, env)
  if (located.mistake !== undefined) mistakes.push(located.mistake)
  return {
    // Without a location there is a mistake, which `readAll` throws.
    storeLocation: located.location as StoreLocation,
    isStoreNamed: (flags.database ?? env.DATABASE_URL) !== undefined,
  }
}

function readListen(flags: Flags, { read, readNumber }: Settings): ListenConfig {
  return {
    port: readNumber('PORT', 3000, [0, 65535], flags.port),
    host: read('HOST', '127.0.0.1', toHost, 'a host name or an IP address', flags.host),
  }
}

function readService(flags: Flags, env: Environment, settings: Settings): Config {
  const { mistakes, read, readNumber } = settings
  const store = readStore(flags, env, settings)
  const operator = readOperatorToken(env.PLANT_STORE_TOKEN, env.PLANT_STORE_TOKEN_FILE)
  if (operator.mistake !== undefined) mistakes.push(operator.mistake)
  const issuerUrl = read<string | undefined>(
    'AUTH_ISSUER',
    undefined,
    (text) => (isIssuerUrl(text) ? text : undefined),
    'an https address without a query, such as https://login.example/realms/plants',
  )
  const audience = env.AUTH_AUDIENCE
  if (audience === '') mistakes.push('AUTH_AUDIENCE must not be empty.')
  if ((env.AUTH_ISSUER === undefined) !== (audience === undefined)) {
    mistakes.push('AUTH_ISSUER and AUTH_AUDIENCE need each other: set both, or neither.')
  }
  return {
    ...store,
    ...readListen(flags, settings),
    operatorToken: operator.token,
    operatorTokenFile: env.PLANT_STORE_TOKEN_FILE,
    issuer: issuerUrl && audience ? { url: issuerUrl, audience } : undefined,
    publicUrl: read<string | undefined>('PUBLIC_URL', undefined, toPublicUrl, expectedUrl),
    allowedOrigins: read<AllowedOrigins>(
      'CORS_ORIGIN',
      '*',
      toOrigins,
      '* or origins separated by commas, such as https://a.example,https://b.example',
    ),
    workers: readNumber('WORKERS', 1, [1, 64], flags.workers),
    rateLimit: read<RateLimit | undefined>(
      'RATE_LIMIT',
      undefined,
      toRateLimit,
      'a number of requests per s, m or h, such as 600/m',
    ),
    trustedProxies: readNumber('TRUST_PROXY', 0, [0, 9]),
    journalKeepMs: read<number | 'off'>(
      'JOURNAL_KEEP',
      7 * 24 * 3_600_000,
      toJournalKeep,
      'a time from 1h to 365d, such as 48h or 7d, or off',
    ),
    journalMaxBytes: read(
      'JOURNAL_MAX',
      gib,
      toJournalMax,
      'a size from 16MiB to 256GiB, such as 512MiB or 1GiB',
    ),
    isUnderSystemd: env.JOURNAL_STREAM !== undefined,
    logLevel: read('LOG_LEVEL', 'info', toLogLevel, `one of ${logLevels.join(', ')}`),
  }
}

type Range = readonly [min: number, max: number]

function toHost(text: string): string | undefined {
  return /^[\w.:%-]+$/.test(text) ? text : undefined
}

const expectedUrl = 'an http or https address without a query, such as https://plants.example/api'

/** The base URL that a setting or an argument holds, without its trailing slash. */
export function requireUrl(setting: string, text: string): string {
  const url = toPublicUrl(text)
  if (url !== undefined) return url
  throw new WrongConfig([`${setting} must be ${expectedUrl}${quoteWrong(text)}.`])
}

/** A base URL for clients; undefined if it is not usable as one. */
function toPublicUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return undefined
  // An empty query has its question mark in `href` only.
  if (/[?#]/.test(url.href) || url.username || url.password) return undefined
  return url.href.replace(/\/+$/, '')
}

function toOrigins(text: string): AllowedOrigins | undefined {
  if (text === '*') return '*'
  const origins = text.split(',').map((part) => part.trim())
  return origins.every((origin) => URL.parse(origin)?.origin === origin) ? origins : undefined
}

const maxKeepMs = 365 * 24 * 3_600_000

function toJournalKeep(text: string): number | 'off' | undefined {
  if (text === 'off') return text
  const keepMs = /^[1-9]\d{0,3}[hd]$/.test(text) ? toMs(text) : undefined
  return keepMs !== undefined && keepMs <= maxKeepMs ? keepMs : undefined
}

const mib = 1024 * 1024
const gib = 1024 * mib

function toJournalMax(text: string): number | undefined {
  const [, count, unit] = /^([1-9]\d{0,5})(MiB|GiB)$/.exec(text) ?? []
  const bytes = Number(count) * (unit === 'MiB' ? mib : gib)
  return bytes >= 16 * mib && bytes <= 256 * gib ? bytes : undefined
}

function toRateLimit(text: string): RateLimit | undefined {
  const [, requests, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  const windowMs = toMs(`1${unit}`)
  return windowMs === undefined ? undefined : { requests: Number(requests), windowMs }
}

function toLogLevel(text: string): string | undefined {
  return logLevels.includes(text) ? text : undefined
}
