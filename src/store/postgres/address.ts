import { UnusableStore } from '../store.ts'

/** Where one server listens. */
export interface Host {
  readonly host: string
  readonly port: number
}

export const tlsModes = [
  'disable',
  'allow',
  'prefer',
  'require',
  'verify-ca',
  'verify-full',
] as const
export type TlsMode = (typeof tlsModes)[number]

/** How to encrypt, in the words of libpq: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`. */
export interface TlsSettings {
  readonly mode: TlsMode
  /** The file with the trusted authorities, or `system` for those that the machine trusts. */
  readonly rootCertificate: string | undefined
  readonly certificate: string | undefined
  readonly key: string | undefined
}

/** The servers of DATABASE_URL, and how to talk to them. */
export interface Address {
  readonly hosts: readonly Host[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly tls: TlsSettings
  readonly isPrepared: boolean
  /** Settings that a server gets with every connection. */
  readonly settings: Readonly<Record<string, string>>
}

/** The parts of an address, as they are written. */
interface AddressParts {
  readonly scheme: string
  readonly user: string
  readonly password: string
  readonly hosts: string
  readonly database: string
  readonly query: string
}

const addressPattern = new RegExp(
  [
    '^(?<scheme>postgres(?:ql)?://)',
    '(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?',
    '(?<hosts>[^@/?#]+)',
    '(?:/(?<database>[^?#]*))?',
    '(?:\\?(?<query>[^#]*))?$',
  ].join(''),
)
const hostPattern = /^(?:(?<name>[\w.-]+)|\[(?<ipv6>[0-9A-Fa-f:.]+)\])(?::(?<port>\d{1,5}))?$/
const defaultPort = 5432
const settingNames = ['application_name', 'options'] as const
const parameterNames = [
  'sslmode',
  'ssl',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'prepare',
  'target_session_attrs',
  ...settingNames,
] as const
type ParameterName = (typeof parameterNames)[number]
type Parameters = Partial<Record<ParameterName, string>>

/** Splits an address of PostgreSQL; undefined when it is none. Parameters are not looked at. */
export function splitAddress(url: string): AddressParts | undefined {
  const groups = addressPattern.exec(url)?.groups
  if (groups === undefined) return undefined
  const { scheme = '', user = '', password = '', hosts = '', database = '', query = '' } = groups
  const isWellFormed =
    hosts.split(',').every((text) => toHost(text) !== undefined) &&
    [user, password, database].every(isDecodable)
  return isWellFormed ? { scheme, user, password, hosts, database, query } : undefined
}

/** Reads an address with its parameters, or throws `UnusableStore` with the first mistake. */
export function toAddress(url: string): Address {
  const parts = splitAddress(url)
  if (parts === undefined) {
    throw new UnusableStore('DATABASE_URL must be postgres://USER:PASSWORD@HOST/DATABASE.')
  }
  const parameters = readParameters(parts.query)
  requireOneOf(parameters, 'target_session_attrs', ['primary', 'read-write'])
  return {
    hosts: parts.hosts.split(',').flatMap((text) => toHost(text) ?? []),
    user: decodeURIComponent(parts.user) || undefined,
    password: decodeURIComponent(parts.password) || undefined,
    database: decodeURIComponent(parts.database) || undefined,
    tls: toTlsSettings(parameters),
    isPrepared: requireOneOf(parameters, 'prepare', ['true', 'false']) !== 'false',
    settings: Object.fromEntries(
      settingNames.flatMap((name) => {
        const value = parameters[name]
        return value === undefined ? [] : [[name, value]]
      }),
    ),
  }
}

export function toHost(text: string): Host | undefined {
  const { name, ipv6, port = defaultPort } = hostPattern.exec(text)?.groups ?? {}
  const host = name ?? ipv6
  return host === undefined || Number(port) > 65_535 ? undefined : { host, port: Number(port) }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function readParameters(query: string): Parameters {
  const parameters: Parameters = {}
  // A plus sign is itself, as for libpq: file names may have one.
  for (const [name, value] of new URLSearchParams(query.replaceAll('+', '%2B'))) {
    if (!isParameterName(name)) {
      const shown = /^\w{1,40}$/.test(name) ? name : 'without a proper name'
      throw new UnusableStore(
        `DATABASE_URL has an unknown parameter ${shown}: it may have ${parameterNames.join(', ')}.`,
      )
    }
    if (parameters[name] !== undefined) {
      throw new UnusableStore(`DATABASE_URL has the parameter ${name} twice: leave one out.`)
    }
    if (value === '') throw new UnusableStore(`The parameter ${name} of DATABASE_URL is empty.`)
    parameters[name] = value
  }
  return parameters
}

function isParameterName(name: string): name is ParameterName {
  return (parameterNames as readonly string[]).includes(name)
}

function requireOneOf<Value extends string>(
  parameters: Parameters,
  name: ParameterName,
  values: readonly Value[],
): Value | undefined {
  const given = parameters[name]
  const value = values.find((candidate) => candidate === given)
  if (given === value) return value
  const expected = values.join(', ').replace(/, ([^,]*)$/, ' or $1')
  throw new UnusableStore(`The parameter ${name} of DATABASE_URL must be ${expected}.`)
}

function toTlsSettings(parameters: Parameters): TlsSettings {
  const { sslrootcert: rootCertificate, sslcert: certificate, sslkey: key } = parameters
  // JDBC's way to ask for TLS, which libpq knows as well.
  const required = requireOneOf(parameters, 'ssl', ['true']) && 'require'
  const given = requireOneOf(parameters, 'sslmode', tlsModes) ?? required
  const mode = given ?? (rootCertificate === 'system' ? 'verify-full' : 'prefer')
  if (rootCertificate === 'system' && mode !== 'verify-full') {
    throw new UnusableStore(
      'DATABASE_URL has sslrootcert=system, which needs sslmode=verify-full: ' +
        'those authorities sign for any server, so the name must be checked as well.',
    )
  }
  if (rootCertificate !== undefined && !['require', 'verify-ca', 'verify-full'].includes(mode)) {
    throw new UnusableStore(
      `DATABASE_URL has sslrootcert, but sslmode=${mode} checks no certificate: ` +
        'set sslmode=verify-full.',
    )
  }
  return { mode, rootCertificate, certificate, key }
}
