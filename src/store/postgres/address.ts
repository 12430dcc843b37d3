import { UnusableStore } from '../store.ts'

/** The encryptions that each `sslmode` tries in order until the server agrees. */
export const encryptions = {
  disable: ['none'],
  allow: ['none', 'tls'],
  prefer: ['tls', 'none'],
  require: ['tls'],
  'verify-ca': ['tls'],
  'verify-full': ['tls'],
} as const satisfies Record<string, readonly ('none' | 'tls')[]>
export type TlsMode = keyof typeof encryptions

/** How to encrypt, in the words of libpq: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`. */
export interface TlsSettings {
  readonly mode: TlsMode
  /** The file with the trusted authorities, or `system` for those that the machine trusts. */
  readonly rootCertificate: string | undefined
  readonly certificate: string | undefined
  readonly key: string | undefined
}

/** When an idle connection is probed, how often, and how many probes may go unanswered. */
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
  /** Whether TLS begins at once, or after the server has agreed to it. */
  readonly negotiation: 'postgres' | 'direct'
  /** How long connecting to one server may take. */
  readonly connectTimeoutMs: number
  /** Absent: idle connections are not probed. */
  readonly keepAlive: KeepAlive | undefined
  readonly isPrepared: boolean
  /** Settings that are sent with every connection. */
  readonly settings: Readonly<Record<string, string>>
}

/** The parts of an address, as they are written, and the hosts that they name. */
type AddressParts = NonNullable<ReturnType<typeof splitAddress>>

const addressPattern = new RegExp(
  [
    '^(?<scheme>postgres(?:ql)?://)',
    '(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?',
    '(?<authority>[^@/?#]*)',
    '(?:/(?<database>[^?#]*))?',
    '(?:\\?(?<query>[^#]*))?$',
  ].join(''),
)
const defaultConnectTimeoutMs = 2_000
const defaultIdleMs = 60_000

/** Splits an address of PostgreSQL; undefined if it is not one. Only its hosts are checked. */
export function splitAddress(url: string) {
  const groups = addressPattern.exec(url)?.groups
  if (groups === undefined) return undefined
  const { scheme = '', user = '', password = '' } = groups
  const { authority = '', database = '', query = '' } = groups
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
  refuseContradictions(parts, parameters)
  const { connect_timeout, keepalives, keepalives_idle, keepalives_interval } = parameters
  const { keepalives_count, application_name, options } = parameters
  return {
    hosts: parts.hosts,
    user: decode(parts.user) || undefined,
    password: decode(parts.password) || undefined,
    database: decode(parts.database) || undefined,
    tls: {
      mode: toTlsMode(parameters),
      rootCertificate: parameters.sslrootcert,
      certificate: parameters.sslcert,
      key: parameters.sslkey,
    },
    negotiation: parameters.sslnegotiation === 'direct' ? 'direct' : 'postgres',
    connectTimeoutMs: toMs(connect_timeout) ?? defaultConnectTimeoutMs,
    keepAlive:
      keepalives === '0'
        ? undefined
        : {
            idleMs: toMs(keepalives_idle) ?? defaultIdleMs,
            intervalMs: toMs(keepalives_interval),
            count: keepalives_count === undefined ? undefined : Number(keepalives_count),
          },
    isPrepared: parameters.prepare !== 'false',
    settings: {
      ...(application_name !== undefined && { application_name }),
      ...(options !== undefined && { options }),
    },
  }
}

function toMs(seconds: string | undefined): number | undefined {
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}

function toTlsMode({ sslmode, ssl, sslrootcert }: Parameters): TlsMode {
  if (sslmode !== undefined) return sslmode as TlsMode
  // JDBC's way to ask for TLS, which libpq accepts as well.
  if (ssl !== undefined) return 'require'
  return sslrootcert === 'system' ? 'verify-full' : 'prefer'
}

/** Throws `UnusableStore` if parameters contradict each other. */
function refuseContradictions({ authority }: AddressParts, parameters: Parameters): void {
  const { host, port, channel_binding, sslnegotiation, sslrootcert } = parameters
  const mode = toTlsMode(parameters)
  const isAlwaysEncrypted = ['require', 'verify-ca', 'verify-full'].includes(mode)
  const refuse = (reason: string) => {
    throw new UnusableStore(`DATABASE_URL has ${reason}`)
  }
  if (authority !== '' && host !== undefined)
    refuse('a host and the parameter host: leave one out.')
  if (authority !== '' && port !== undefined) {
    refuse('a host and the parameter port: write HOST:PORT instead.')
  }
  if (channel_binding === 'require') {
    refuse(
      'channel_binding=require, which the service cannot do: leave it out, and ' +
        'set sslmode=verify-full&sslrootcert=system, which keeps impostors out as well.',
    )
  }
  if (sslnegotiation === 'direct' && !isAlwaysEncrypted) {
    refuse('sslnegotiation=direct, which needs sslmode=require, verify-ca or verify-full.')
  }
  if (sslrootcert === 'system' && mode !== 'verify-full') {
    refuse(
      'sslrootcert=system, which needs sslmode=verify-full: ' +
        'those authorities sign for any server, so the name must be checked as well.',
    )
  }
  if (sslrootcert !== undefined && !isAlwaysEncrypted) {
    refuse(`sslrootcert, but sslmode=${mode} checks no certificate: set sslmode=verify-full.`)
  }
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

/** The hosts before the path or, if there are none, those of the parameters. */
function toHosts(authority: string, query: string): Host[] | undefined {
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

/** Undefined if the percent-encoding is broken. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * The accepted parameters with their values: any text, one of a list, or a whole number up to a
 * maximum. They mean the same as for libpq.
 */
const accepted = {
  host: 'any',
  port: 'any',
  sslmode: Object.keys(encryptions),
  ssl: ['true'],
  sslrootcert: 'any',
  sslcert: 'any',
  sslkey: 'any',
  sslnegotiation: ['postgres', 'direct'],
  channel_binding: ['disable', 'prefer', 'require'],
  connect_timeout: 600,
  keepalives: ['0', '1'],
  keepalives_idle: 32_767,
  keepalives_interval: 32_767,
  keepalives_count: 127,
  prepare: ['true', 'false'],
  target_session_attrs: ['primary', 'read-write'],
  application_name: 'any',
  options: 'any',
} as const satisfies Record<string, 'any' | readonly string[] | number>
type Name = keyof typeof accepted
type Parameters = Readonly<Partial<Record<Name, string>>>

/** Reads the parameters of an address, or throws `UnusableStore` with the first mistake. */
function readParameters(query: string): Parameters {
  const parameters: Partial<Record<Name, string>> = {}
  for (const [name, value] of decodeQuery(query)) {
    if (!isName(name)) throw new UnusableStore(explainRefusal(name))
    if (parameters[name] !== undefined) {
      throw new UnusableStore(`DATABASE_URL has the parameter ${name} twice: leave one out.`)
    }
    const mistake = findMistake(accepted[name], value)
    if (mistake !== undefined) {
      throw new UnusableStore(`The parameter ${name} of DATABASE_URL ${mistake}.`)
    }
    parameters[name] = value
  }
  return parameters
}

function findMistake(values: (typeof accepted)[Name], value: string): string | undefined {
  if (value === '') return 'is empty'
  if (typeof values === 'number') {
    const isAccepted = /^\d{1,9}$/.test(value) && Number(value) >= 1 && Number(value) <= values
    return isAccepted ? undefined : `must be a whole number from 1 to ${values}`
  }
  const list: readonly string[] = values === 'any' ? [value] : values
  if (list.includes(value)) return undefined
  return `must be ${list.join(', ').replace(/, ([^,]*)$/, ' or $1')}`
}

/** One parameter; undefined if it is missing. The others are not checked. */
function findParameter(query: string, sought: Name): string | undefined {
  return decodeQuery(query).find(([name]) => name === sought)?.[1]
}

/** A plus sign stands for itself, as for libpq: file names may contain one. */
function decodeQuery(query: string): [name: string, value: string][] {
  return [...new URLSearchParams(query.replaceAll('+', '%2B'))]
}

function isName(name: string): name is Name {
  return Object.hasOwn(accepted, name)
}

function explainRefusal(name: string): string {
  if (name === 'tcp_user_timeout') {
    return (
      'DATABASE_URL has the parameter tcp_user_timeout, which Node.js cannot set: leave it out. ' +
      'The service drops a server that does not answer for a second.'
    )
  }
  const shown = /^\w{1,40}$/.test(name) ? name : 'without a proper name'
  const names = Object.keys(accepted).join(', ')
  return `DATABASE_URL has an unknown parameter ${shown}: it may have ${names}.`
}
