import { UnusableStore } from '../store.ts'

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

/** When a silent connection is probed, how often, and after how many probes it is given up. */
export interface KeepAlive {
  readonly idleMs: number
  readonly intervalMs: number | undefined
  readonly count: number | undefined
}

/** The servers of DATABASE_URL, and how to talk to them. */
export interface Address {
  readonly hosts: readonly Host[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly tls: TlsSettings
  /** Whether TLS begins at once, or after the server was asked for it. */
  readonly negotiation: 'postgres' | 'direct'
  /** How long the attempt to reach one server may take. */
  readonly connectTimeoutMs: number
  /** Absent: idle connections are not probed. */
  readonly keepAlive: KeepAlive | undefined
  readonly isPrepared: boolean
  /** Settings that a server gets with every connection. */
  readonly settings: Readonly<Record<string, string>>
}

/** The parts of an address, as they are written, and the hosts that they name. */
interface AddressParts {
  readonly scheme: string
  readonly user: string
  readonly password: string
  readonly authority: string
  readonly database: string
  readonly query: string
  readonly hosts: readonly Host[]
}

const addressPattern = new RegExp(
  [
    '^(?<scheme>postgres(?:ql)?://)',
    '(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?',
    '(?<authority>[^@/?#]*)',
    '(?:/(?<database>[^?#]*))?',
    '(?:\\?(?<query>[^#]*))?$',
  ].join(''),
)
const settingNames = ['application_name', 'options'] as const
const defaultConnectTimeoutMs = 2_000
const longestConnectTimeoutSeconds = 600
const defaultIdleMs = 60_000
/** The largest number of seconds and of probes that a system takes. */
const largestIdleSeconds = 32_767
const mostProbes = 127

/** Splits an address of PostgreSQL; undefined when it is none. Only hosts are looked at. */
export function splitAddress(url: string): AddressParts | undefined {
  const groups = addressPattern.exec(url)?.groups
  if (groups === undefined) return undefined
  const {
    scheme = '',
    user = '',
    password = '',
    authority = '',
    database = '',
    query = '',
  } = groups
  const hosts = toHosts(authority, query)
  return hosts !== undefined &&
    [user, password, database].every((text) => decode(text) !== undefined)
    ? { scheme, user, password, authority, database, query, hosts }
    : undefined
}

/** Reads an address with its parameters, or throws `UnusableStore` with the first mistake. */
export function toAddress(url: string): Address {
  const parts = splitAddress(url)
  if (parts === undefined) {
    throw new UnusableStore(
      'DATABASE_URL must be postgres://USER:PASSWORD@HOST/DATABASE, ' +
        'or postgres:///DATABASE?host=FOLDER for a Unix socket.',
    )
  }
  const parameters = readParameters(parts.query)
  if (parameters.host !== undefined && parts.authority !== '') {
    throw new UnusableStore('DATABASE_URL has a host and the parameter host: leave one out.')
  }
  if (parameters.port !== undefined && parts.authority !== '') {
    throw new UnusableStore(
      'DATABASE_URL has a host and the parameter port: write HOST:PORT instead.',
    )
  }
  requireOneOf(parameters, 'target_session_attrs', ['primary', 'read-write'])
  if (requireOneOf(parameters, 'channel_binding', channelBindings) === 'require') {
    throw new UnusableStore(
      'DATABASE_URL has channel_binding=require, which the service cannot do: leave it out, and ' +
        'set sslmode=verify-full&sslrootcert=system, which keeps impostors out as well.',
    )
  }
  const tls = toTlsSettings(parameters)
  return {
    hosts: parts.hosts,
    user: decode(parts.user) || undefined,
    password: decode(parts.password) || undefined,
    database: decode(parts.database) || undefined,
    tls,
    negotiation: toNegotiation(parameters, tls.mode),
    connectTimeoutMs: toConnectTimeoutMs(parameters),
    keepAlive: toKeepAlive(parameters),
    isPrepared: requireOneOf(parameters, 'prepare', ['true', 'false']) !== 'false',
    settings: Object.fromEntries(
      settingNames.flatMap((name) => {
        const value = parameters[name]
        return value === undefined ? [] : [[name, value]]
      }),
    ),
  }
}

const channelBindings = ['disable', 'prefer', 'require'] as const

function toConnectTimeoutMs(parameters: Parameters): number {
  const seconds = requireNumber(parameters, 'connect_timeout', longestConnectTimeoutSeconds)
  return seconds === undefined ? defaultConnectTimeoutMs : seconds * 1_000
}

function toKeepAlive(parameters: Parameters): KeepAlive | undefined {
  const toMs = (seconds: number | undefined) => seconds && seconds * 1_000
  const idle = requireNumber(parameters, 'keepalives_idle', largestIdleSeconds)
  const interval = requireNumber(parameters, 'keepalives_interval', largestIdleSeconds)
  const count = requireNumber(parameters, 'keepalives_count', mostProbes)
  if (requireOneOf(parameters, 'keepalives', ['0', '1']) === '0') return undefined
  return { idleMs: toMs(idle) ?? defaultIdleMs, intervalMs: toMs(interval), count }
}

function toNegotiation(parameters: Parameters, mode: TlsMode): Address['negotiation'] {
  const given = requireOneOf(parameters, 'sslnegotiation', ['postgres', 'direct']) ?? 'postgres'
  if (given === 'postgres' || checkedModes.includes(mode)) return given
  throw new UnusableStore(
    'DATABASE_URL has sslnegotiation=direct, which needs sslmode=require, verify-ca or verify-full.',
  )
}

/** The modes that never go without TLS. */
const checkedModes: readonly TlsMode[] = ['require', 'verify-ca', 'verify-full']

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
  if (rootCertificate !== undefined && !checkedModes.includes(mode)) {
    throw new UnusableStore(
      `DATABASE_URL has sslrootcert, but sslmode=${mode} checks no certificate: ` +
        'set sslmode=verify-full.',
    )
  }
  return { mode, rootCertificate, certificate, key }
}

/** Where one server listens. A host with a slash is the folder of its Unix socket. */
export interface Host {
  readonly host: string
  readonly port: number
}

const authorityPattern =
  /^(?:(?<name>[\w.-]+)|\[(?<ipv6>[0-9A-Fa-f:.]+)\]|(?<folder>%2[Ff][^:\s]*))(?::(?<port>\d{1,5}))?$/
/** A host in a parameter: a folder, or a name or address. */
const hostPattern = /^(?:\/[^\0]*|[\w.:-]+)$/
const defaultPort = 5432

export function isUnixSocket({ host }: Host): boolean {
  return host.startsWith('/')
}

/** The file of a Unix socket, which the server names after its port. */
export function toSocketPath({ host, port }: Host): string {
  return `${host}/.s.PGSQL.${port}`
}

/** The hosts before the path, or those of the parameters where there are none. */
export function toHosts(authority: string, query: string): Host[] | undefined {
  if (authority !== '') return toAll(authority.split(',').map(toHost))
  const hosts = findParameter(query, 'host')?.split(',')
  const ports = findParameter(query, 'port')?.split(',') ?? [String(defaultPort)]
  if (hosts === undefined || (ports.length !== 1 && ports.length !== hosts.length)) return undefined
  return toAll(
    hosts.map((host, index) => {
      const port = (ports.length === 1 ? ports[0] : ports[index]) ?? ''
      return hostPattern.test(host) && /^\d{1,5}$/.test(port) ? withPort(host, port) : undefined
    }),
  )
}

function toHost(text: string): Host | undefined {
  const { name, ipv6, folder, port = defaultPort } = authorityPattern.exec(text)?.groups ?? {}
  const host = name ?? ipv6 ?? (folder && decode(folder))
  return host === undefined ? undefined : withPort(host, port)
}

function withPort(host: string, port: string | number): Host | undefined {
  return Number(port) > 65_535 ? undefined : { host, port: Number(port) }
}

function toAll<Value>(values: readonly (Value | undefined)[]): Value[] | undefined {
  const defined = values.filter((value) => value !== undefined)
  return defined.length === values.length ? defined : undefined
}

/** Undefined when the text is not well encoded. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The parameters of an address that are taken. They mean what they mean for libpq. */
const names = [
  'host',
  'port',
  'sslmode',
  'ssl',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'channel_binding',
  'connect_timeout',
  'keepalives',
  'keepalives_idle',
  'keepalives_interval',
  'keepalives_count',
  'prepare',
  'target_session_attrs',
  'application_name',
  'options',
] as const
type Name = (typeof names)[number]

type Parameters = Readonly<Partial<Record<Name, string>>>

/** Parameters of libpq that are refused for another reason than that nobody knows them. */
const refusals: Readonly<Record<string, string>> = {
  tcp_user_timeout:
    'which Node.js cannot set: leave it out. A server that is silent for a second is given up.',
}

/** Reads the parameters of an address, or throws `UnusableStore` with the first mistake. */
function readParameters(query: string): Parameters {
  const parameters: Partial<Record<Name, string>> = {}
  for (const [name, value] of decodeQuery(query)) {
    if (!isName(name)) throw new UnusableStore(explainRefusal(name))
    if (parameters[name] !== undefined) {
      throw new UnusableStore(`DATABASE_URL has the parameter ${name} twice: leave one out.`)
    }
    if (value === '') throw new UnusableStore(`The parameter ${name} of DATABASE_URL is empty.`)
    parameters[name] = value
  }
  return parameters
}

/** One parameter; undefined when there is none. The others are not looked at. */
function findParameter(query: string, sought: Name): string | undefined {
  return decodeQuery(query).find(([name]) => name === sought)?.[1]
}

/** A plus sign is itself, as for libpq: file names may have one. */
function decodeQuery(query: string): [name: string, value: string][] {
  return [...new URLSearchParams(query.replaceAll('+', '%2B'))]
}

function isName(name: string): name is Name {
  return (names as readonly string[]).includes(name)
}

function explainRefusal(name: string): string {
  const refusal = Object.hasOwn(refusals, name) ? refusals[name] : undefined
  if (refusal !== undefined) return `DATABASE_URL has the parameter ${name}, ${refusal}`
  const shown = /^\w{1,40}$/.test(name) ? name : 'without a proper name'
  return `DATABASE_URL has an unknown parameter ${shown}: it may have ${names.join(', ')}.`
}

function requireOneOf<Value extends string>(
  parameters: Parameters,
  name: Name,
  values: readonly Value[],
): Value | undefined {
  const given = parameters[name]
  const value = values.find((candidate) => candidate === given)
  if (given === value) return value
  const expected = values.join(', ').replace(/, ([^,]*)$/, ' or $1')
  throw new UnusableStore(`The parameter ${name} of DATABASE_URL must be ${expected}.`)
}

/** A whole number from 1 to `largest`. For libpq, 0 means no limit, or the system's own. */
function requireNumber(parameters: Parameters, name: Name, largest: number): number | undefined {
  const given = parameters[name]
  if (given === undefined) return undefined
  const value = /^\d{1,9}$/.test(given) ? Number(given) : 0
  if (value >= 1 && value <= largest) return value
  throw new UnusableStore(
    `The parameter ${name} of DATABASE_URL must be a whole number from 1 to ${largest}.`,
  )
}
