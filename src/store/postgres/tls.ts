import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import {
  type ConnectionOptions,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'
import { UnusableStore } from '../store.ts'
import type { TlsSettings } from './address.ts'
import { codeOf } from './failures.ts'

/** Reads the files for TLS. Throws `UnusableStore` if one cannot be used. */
export async function readTlsOptions(settings: TlsSettings): Promise<ConnectionOptions> {
  const ca = await readAuthorities(settings)
  const client = await readClientCertificate(settings)
  return {
    secureContext: toSecureContext({ ...(ca && { ca }), ...client }),
    rejectUnauthorized: ca !== undefined,
    ...(settings.mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  }
}

/** The authorities to trust; undefined if the certificate of the server is not checked. */
async function readAuthorities({ mode, rootCertificate }: TlsSettings) {
  if (mode === 'allow' || mode === 'prefer') return undefined
  if (rootCertificate === 'system') return getCACertificates('system')
  if (rootCertificate !== undefined) {
    return requireCertificate(await readNamed('sslrootcert', rootCertificate))
  }
  const standard = await readStandard('root.crt')
  if (standard === undefined && mode !== 'require') {
    throw new UnusableStore(
      `DATABASE_URL has sslmode=${mode}, but names no authority to trust: ` +
        'set sslrootcert to the file with its certificate, or to system.',
    )
  }
  return standard && requireCertificate(standard)
}

/** Refuses a file without a certificate, which Node.js would treat as an empty list. */
function requireCertificate(text: string): string {
  try {
    return new X509Certificate(text) && text
  } catch (error) {
    throw notPem(error)
  }
}

/** The client certificate, if there is one. */
async function readClientCertificate({
  certificate,
  key,
}: TlsSettings): Promise<SecureContextOptions> {
  const cert =
    certificate === undefined
      ? await readStandard('postgresql.crt')
      : await readNamed('sslcert', certificate)
  if (cert === undefined) return {}
  const keyFile = key ?? toStandardPath('postgresql.key')
  const text = await readNamed('sslkey', keyFile)
  await requirePrivate(keyFile)
  return { cert, key: text }
}

async function readNamed(parameter: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UnusableStore(
      `${parameter} of DATABASE_URL: the file ${path} cannot be read (${codeOf(error)}).`,
      { cause: error },
    )
  }
}

/** Reads a file from the default folder of libpq; undefined if it cannot be read. */
async function readStandard(name: string): Promise<string | undefined> {
  try {
    return await readFile(toStandardPath(name), 'utf8')
  } catch {
    // The file is missing or unreadable, or the user has no home.
    return undefined
  }
}

function toStandardPath(name: string): string {
  return join(homedir(), '.postgresql', name)
}

/** Refuses a key that other users can read, as libpq does. A key of root may be group-readable. */
async function requirePrivate(path: string): Promise<void> {
  const { mode, uid } = await stat(path)
  const tooMuch = uid === 0 ? 0o037 : 0o077
  if (process.platform === 'win32' || (mode & tooMuch) === 0) return
  throw new UnusableStore(
    `sslkey of DATABASE_URL: other users can read the file ${path}. Change its mode to 0600.`,
  )
}

function toSecureContext(options: SecureContextOptions): SecureContext {
  try {
    return createSecureContext(options)
  } catch (error) {
    throw notPem(error)
  }
}

function notPem(cause: unknown): UnusableStore {
  return new UnusableStore(
    'A file of sslrootcert, sslcert or sslkey of DATABASE_URL is no certificate or key ' +
      `in PEM form, or the key belongs to another certificate (${codeOf(cause)}).`,
    { cause },
  )
}
