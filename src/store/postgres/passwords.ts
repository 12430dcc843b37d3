import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { explainErrno } from '../../errno.ts'
import { type Host, isUnixSocket, splitAddress } from './address.ts'

/** A server, and the database and user on it that need a password. */
export interface Login extends Host {
  readonly database: string
  readonly user: string
}

/** An address with its password, or the reason why it could not be found. */
export type Found =
  | { readonly url: string; readonly mistake?: undefined }
  | { readonly url?: undefined; readonly mistake: string }

type Environment = Readonly<Record<string, string | undefined>>

const maxFileBytes = 1024 * 1024

/**
 * Adds the password to an address that has none: from PGPASSWORD, or from the file that PGPASSFILE
 * names or ~/.pgpass, as libpq does. Several hosts share the first password that is found.
 */
export function addPassword(url: string, env: Environment): Found {
  const parts = splitAddress(url)
  if (parts === undefined || parts.password !== '') return { url }
  const user = decodeURIComponent(parts.user) || env.PGUSER || env.USER || ''
  const name = decodeURIComponent(parts.database) || env.PGDATABASE || user
  const logins = parts.hosts.map((host) => ({ ...host, database: name, user }))
  const { password, mistake } = env.PGPASSWORD
    ? { password: env.PGPASSWORD }
    : searchFile(logins, env)
  if (mistake !== undefined) return { mistake }
  if (password === undefined) return { url }
  const { scheme, authority, database, query } = parts
  const secret = `${parts.user}:${encodeURIComponent(password)}@`
  const rest = `${authority}${database && `/${database}`}${query && `?${query}`}`
  return { url: `${scheme}${secret}${rest}` }
}

function searchFile(
  logins: readonly Login[],
  env: Environment,
): { readonly password?: string | undefined; readonly mistake?: string } {
  const path = env.PGPASSFILE ?? (env.HOME && join(env.HOME, '.pgpass'))
  if (!path) return {}
  try {
    const status = statSync(path)
    // Reading a pipe could block forever.
    const isReadable = status.isFile() && status.size <= maxFileBytes
    const content = isReadable ? readFileSync(path, 'utf8') : ''
    const password = logins.map((login) => findPassword(content, login)).find((one) => one)
    const isOpen = process.platform !== 'win32' && (status.mode & 0o077) !== 0
    if (password === undefined || !isOpen) return { password }
    return { mistake: `${path} has the password, but others can read it. Change its mode to 0600.` }
  } catch (error) {
    // Only a file that the operator named has to exist.
    if (env.PGPASSFILE === undefined) return {}
    return { mistake: `PGPASSFILE: cannot read ${path}: ${explainErrno(error)}.` }
  }
}

/** The password for a login in a password file: lines of `host:port:database:user:password`. */
export function findPassword(content: string, login: Login): string | undefined {
  const wanted = [toHostName(login), String(login.port), login.database, login.user]
  for (const line of content.split(/\r?\n/)) {
    if (line.startsWith('#')) continue
    const fields = splitFields(line)
    if (wanted.every((value, index) => fields[index] === value || fields[index] === '*')) {
      return fields[4] || undefined
    }
  }
  return undefined
}

/** As for libpq, a server on the default Unix socket is called localhost. */
function toHostName(at: Host): string {
  return isUnixSocket(at) && usualFolders.includes(at.host) ? 'localhost' : at.host
}

const usualFolders = ['/tmp', '/run/postgresql', '/var/run/postgresql']

/** Splits at colons. A backslash escapes the next character. */
function splitFields(line: string): string[] {
  const fields = ['']
  for (const [token] of line.matchAll(/\\?./gsu)) {
    if (token === ':') fields.push('')
    else fields.push(`${fields.pop()}${token.length > 1 ? token.slice(1) : token}`)
  }
  return fields
}
