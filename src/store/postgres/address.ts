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

const anyText = { pattern: /./s, rule: 'must not be empty' }
const oneOf = (...values: string[]) => ({
  pattern: new RegExp(`^(${values.join('|')})$`),
  rule: `must be ${values.join(', ').replace(/, ([^,]*)$/, ' or $1')}`,
})
/** The accepted parameters, with what their values must be. */
const accepted = {
  host: anyText,
  port: anyText,
  sslmode: oneOf(...Object.keys(encryptions)),
  sslrootcert: anyText,
  sslcert: anyText,
  sslkey: anyText,
  channel_binding: oneOf('disable', 'prefer', 'require'),
  connect_timeout: { pattern: /^([1-9]\d?|[1-5]\d\d|600)$/, rule: 'must be from 1 to 600 seconds' },
  prepare: oneOf('true', 'false'),
  target_session_attrs: oneOf('primary', 'read-write'),
  application_name: anyText,
  options: anyText,
}
type Name = keyof typeof accepted
/** Parameters as they are written. */
type Parameters = Readonly<Partial<Record<Name, string>>>
type Chosen = Parameters & { readonly sslmode: keyof typeof encryptions }

/** Where one server listens. A host with a slash is the folder of its Unix socket. */
export interface Host {
  readonly host: string
  readonly port: number
}

/** The servers of DATABASE_URL, and how to talk to them. */
export type Address = ReturnType<typeof toAddress>

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
const maxPort = 65_535

/** Splits an address of PostgreSQL; undefined if it is not one. Only its hosts are checked. */
export function splitAddress(url: string) {
  const groups = addressPattern.exec(url)?.groups
  if (groups === undefined) return undefined
  const { scheme = '', user = '', password = '' } = groups
  const { authority = '', database = '', query = '' } = groups
  const hosts = authority === '' ? readHosts(query) : authority.split(',').map(toHost)
  const isUsable =
    hosts.every((one) => one !== undefined && one.port <= maxPort) &&
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

/** The file of a Unix socket, which the server names after its port; undefined for other hosts. */
export function toSocketPath({ host, port }: Host): string | undefined {
  return host.startsWith('/') ? `${host}/.s.PGSQL.${port}` : undefined
}

/**
 * Reads an address with its parameters, or throws `UnusableStore` with the first mistake. An
 * address without a password gets the given one.
 */
export function toAddress(url: string, password?: string) {
  const parts = splitAddress(url)
  if (parts === undefined) {
    throw new UnusableStore(
      'DATABASE_URL must be postgres://USER:PASSWORD@HOST/DATABASE, ' +
        'or postgres:///DATABASE?host=FOLDER for a Unix socket.',
    )
  }
  const written = readParameters(parts.query)
  const sslmode = written.sslmode ?? (written.sslrootcert === 'system' ? 'verify-full' : 'prefer')
  const parameters = { ...written, sslmode } as Chosen
  const contradiction = findContradiction(parts.authority, parameters)
  if (contradiction !== undefined) throw new UnusableStore(`DATABASE_URL has ${contradiction}`)
  return {
    hosts: parts.hosts,
    user: decode(parts.user) || undefined,
    password: decode(parts.password) || password,
    database: decode(parts.database) || undefined,
    parameters,
  }
}

/** Says which parameters contradict each other, or would be unsafe to ignore. */
function findContradiction(authority: string, parameters: Chosen): string | undefined {
  const { host, port, sslmode, channel_binding, sslrootcert, sslcert, sslkey } = parameters
  const isAlwaysEncrypted = !(encryptions[sslmode] as readonly string[]).includes('none')
  if (authority !== '' && host !== undefined) return 'a host and the parameter host: leave one out.'
  if (authority !== '' && port !== undefined)
    return 'a host and the parameter port: write HOST:PORT instead.'
  if (channel_binding === 'require' && !isAlwaysEncrypted)
    return 'channel_binding=require, which needs sslmode=require, verify-ca or verify-full.'
  if (sslrootcert === 'system' && sslmode !== 'verify-full')
    return 'sslrootcert=system, which needs sslmode=verify-full: those authorities sign for any server, so the name must be checked as well.'
  if (sslrootcert !== undefined && !isAlwaysEncrypted)
    return `sslrootcert, but sslmode=${sslmode} checks no certificate: set sslmode=verify-full.`
  if (sslrootcert === undefined && sslmode === 'verify-ca')
    return 'sslmode=verify-ca, which needs sslrootcert, the file with the authority to trust.'
  if ((sslcert === undefined) !== (sslkey === undefined))
    return 'only one of sslcert and sslkey: set both, or neither.'
  return undefined
}

/** Reads the parameters of an address, or throws `UnusableStore` with the first mistake. */
function readParameters(query: string): Parameters {
  const parameters: Partial<Record<Name, string>> = {}
  for (const [name, value] of decodeQuery(query)) {
    const mistake = findMistake(name, value, parameters)
    if (mistake !== undefined) throw new UnusableStore(mistake)
    parameters[name as Name] = value
  }
  return parameters
}

function findMistake(name: string, value: string, before: Parameters): string | undefined {
  if (!Object.hasOwn(accepted, name)) {
    const shown = /^\w{1,40}$/.test(name) ? name : 'without a proper name'
    const names = Object.keys(accepted).join(', ')
    return `DATABASE_URL has an unknown parameter ${shown}: it may have ${names}.`
  }
  if (Object.hasOwn(before, name))
    return `DATABASE_URL has the parameter ${name} twice: leave one out.`
  const { pattern, rule } = accepted[name as Name]
  return pattern.test(value) ? undefined : `The parameter ${name} of DATABASE_URL ${rule}.`
}

/** A plus sign stands for itself, as for libpq: file names may contain one. */
function decodeQuery(query: string): URLSearchParams {
  return new URLSearchParams(query.replaceAll('+', '%2B'))
}

/** Undefined if the percent-encoding is broken. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
