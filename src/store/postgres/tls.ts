import { readFile } from 'node:fs/promises'
import {
  type ConnectionOptions,
  createSecureContext,
  getCACertificates,
  type SecureContextOptions,
} from 'node:tls'
import { UnusableStore } from '../store.ts'
import type { TlsSettings } from './address.ts'
import { codeOf } from './failures.ts'

/** Reads the files for TLS. Throws `UnusableStore` if one cannot be used. */
export async function readTlsOptions(settings: TlsSettings): Promise<ConnectionOptions> {
  const { mode, rootCertificate, certificate, key } = settings
  const files: SecureContextOptions = {
    // Without it, Node.js trusts the authorities that it brings.
    ...(rootCertificate && { ca: await readAuthorities(rootCertificate) }),
    ...(certificate && { cert: await readNamed('sslcert', certificate) }),
    ...(key && { key: await readNamed('sslkey', key) }),
  }
  return {
    secureContext: toSecureContext(files),
    rejectUnauthorized: mode === 'verify-full' || files.ca !== undefined,
    ...(mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  }
}

async function readAuthorities(path: string): Promise<string | string[]> {
  return path === 'system' ? getCACertificates('system') : readNamed('sslrootcert', path)
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

function toSecureContext(files: SecureContextOptions) {
  try {
    return createSecureContext(files)
  } catch (error) {
    throw new UnusableStore(
      'A file of sslrootcert, sslcert or sslkey of DATABASE_URL is no certificate or key ' +
        `in PEM form, or the key belongs to another certificate (${codeOf(error)}).`,
      { cause: error },
    )
  }
}
