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

/** Where one server listens. A host with a slash is the folder of its Unix socket. */
export interface Host {
  readonly host: string
  readonly port: number
}

/** The servers of DATABASE_URL, and how to talk to them. */
export interface Address {
  readonly hosts: readonly Host[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  readonly tls: TlsSettings
  /** Whether the password is bound to the TLS connection, where the server offers that. */
  readonly bindsChannel: boolean
  /** How long connecting to one server may take. */
  readonly connectTimeoutMs: number
  readonly isPrepared: boolean
  /** Settings that are sent with every connection. */
  readonly settings: Readonly<Record<string, string>>
}

/**
 * The accepted parameters with their values: any text, one of a list, or a whole number up to a
 * maximum.
 */
const accepted = {
  host: 'any',
  port: 65_535,
  sslmode: Object.keys(encryptions),
  sslrootcert: 'any',
  sslcert: 'any',
  sslkey: 'any',
  channel_binding: ['disable', 'prefer', 'require'],
  connect_timeout: 600,
  prepare: ['true', 'false'],
  target_session_attrs: ['primary', 'read-write'],
  application_name: 'any',
  options: 'any',
} as const satisfies Record<string, 'any' | readonly string[] | number>
type Name = keyof typeof accepted
type Parameters = Readonly<Partial<Record<Name, string>>>

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
const hostPattern = /^(?:(?<name>[\w.-]+)|\[(?<ipv6>[0-9A-Fa-f:.]+)\])(?::(?<port>\d{1,5}))?$/
/** A host in a parameter: the folder of a Unix socket, or a name or address. */
const parameterPattern = /^(?:\/[^\0]*|[\w.:-]+)$/
const defaultPort = '5432'
const defaultConnectTimeoutMs = 2_000

/** Splits an address of PostgreSQL; undefined if it is not one. Only its hosts are checked. */
export function splitAddress(url: string) {
  const groups = addressPattern.exec(url)?.groups
  if (groups === undefined) return undefined
  const { scheme = '', user = '', password = '' } = groups
  const { authority = '', database = '', query = '' } = groups
  const hosts = authority === '' ? readHosts(query) : authority.split(',').map(toHost)
  const isUsable =
    hosts.every((one) => one !== undefined && one.port <= accepted.port) &&
    [user, password, database].every((text) => decode(text) !== undefined)
  if (!isUsable) return undefined
  return { scheme, user, password, authority, database, query, hosts: hosts as Host[] }
}

function toHost(text: string): Host | undefined {
  const { name, ipv6, port = defaultPort } = hostPattern.exec(text)?.groups ?? {}
  const host = name ?? ipv6
  return host === undefined ? undefined : { host, port: Number(port) }
}

/** The hosts that the parameters name, all with one port. */
function readHosts(query: string): (Host | undefined)[] {
  const { host = '', port = defaultPort } = Object.fromEntries(decodeQuery(query))
  return host.split(',').map((one) => {
    const isUsable = parameterPattern.test(one) && /^\d{1,5}$/.test(port)
    return isUsable ? { host: one, port: Number(port) } : undefined
  })
}

export function isUnixSocket({ host }: Host): boolean {
  return host.startsWith('/')
}

/** The file of a Unix socket, which the server names after its port. */
export function toSocketPath({ host, port }: Host): string {
  return `${host}/.s.PGSQL.${port}`
}

/** The address with a password, unless it has one. */
export function withPassword(url: string, password: string): string {
  const parts = splitAddress(url)
  if (parts === undefined || parts.password !== '') return url
  const login = `${parts.scheme}${parts.user}`
  const rest = url.slice(login.length).replace(/^:?@/, '')
  return `${login}:${encodeURIComponent(password)}@${rest}`
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
  const { sslrootcert, sslcert, sslkey, application_name, options } = parameters
  const { connect_timeout, channel_binding = 'disable' } = parameters
  const defaultMode = sslrootcert === 'system' ? 'verify-full' : 'prefer'
  const mode = (parameters.sslmode ?? defaultMode) as TlsMode
  const contradiction = findContradiction(parts, parameters, mode)
  if (contradiction !== undefined) throw new UnusableStore(`DATABASE_URL has ${contradiction}`)
  return {
    hosts: parts.hosts,
    user: decode(parts.user) || undefined,
    password: decode(parts.password) || undefined,
    database: decode(parts.database) || undefined,
    tls: { mode, rootCertificate: sslrootcert, certificate: sslcert, key: sslkey },
    bindsChannel: channel_binding !== 'disable',
    connectTimeoutMs: connect_timeout ? Number(connect_timeout) * 1_000 : defaultConnectTimeoutMs,
    isPrepared: parameters.prepare !== 'false',
    settings: {
      ...(application_name !== undefined && { application_name }),
      ...(options !== undefined && { options }),
    },
  }
}

/** Says which parameters contradict each other, or would be unsafe to ignore. */
function findContradiction(
  { authority }: AddressParts,
  { host, port, channel_binding, sslrootcert, sslcert, sslkey }: Parameters,
  mode: TlsMode,
): string | undefined {
  const isAlwaysEncrypted = ['require', 'verify-ca', 'verify-full'].includes(mode)
  if (authority !== '' && host !== undefined) return 'a host and the parameter host: leave one out.'
  if (authority !== '' && port !== undefined)
    return 'a host and the parameter port: write HOST:PORT instead.'
  if (channel_binding === 'require' && !isAlwaysEncrypted)
    return 'channel_binding=require, which needs sslmode=require, verify-ca or verify-full.'
  if (sslrootcert === 'system' && mode !== 'verify-full')
    return 'sslrootcert=system, which needs sslmode=verify-full: those authorities sign for any server, so the name must be checked as well.'
  if (sslrootcert !== undefined && !isAlwaysEncrypted)
    return `sslrootcert, but sslmode=${mode} checks no certificate: set sslmode=verify-full.`
  if (sslrootcert === undefined && mode === 'verify-ca')
    return 'sslmode=verify-ca, which needs sslrootcert, the file with the authority to trust.'
  if ((sslcert === undefined) !== (sslkey === undefined))
    return 'only one of sslcert and sslkey: set both, or neither.'
  return undefined
}

/** Reads the parameters of an address, or throws `UnusableStore` with the first mistake. */
function readParameters(query: string): Parameters {
  const parameters: Partial<Record<Name, string>> = {}
  for (const [name, value] of decodeQuery(query)) {
    if (!isName(name)) {
      const shown = /^\w{1,40}$/.test(name) ? name : 'without a proper name'
      const names = Object.keys(accepted).join(', ')
      throw new UnusableStore(
        `DATABASE_URL has an unknown parameter ${shown}: it may have ${names}.`,
      )
    }
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

function isName(name: string): name is Name {
  return Object.hasOwn(accepted, name)
}

/** A plus sign stands for itself, as for libpq: file names may contain one. */
function decodeQuery(query: string): [name: string, value: string][] {
  return [...new URLSearchParams(query.replaceAll('+', '%2B'))]
}

/** Undefined if the percent-encoding is broken. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
