import { findParameter } from './parameters.ts'

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
