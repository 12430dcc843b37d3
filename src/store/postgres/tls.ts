import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { isIP, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  connect,
  createSecureContext,
  getCACertificates,
  type TLSSocket,
} from 'node:tls'
import { UnusableStore } from '../store.ts'
import type { Host, Parameters } from './address.ts'
import { codeOf, TlsFailure } from './failures.ts'

/** Reads the files for TLS. Throws `UnusableStore` if one cannot be used. */
export async function readTlsOptions(parameters: Parameters): Promise<ConnectionOptions> {
  const { sslmode, sslrootcert, sslcert, sslkey } = parameters
  const isSystem = sslrootcert === 'system'
  const ca = isSystem ? getCACertificates('system') : await read('sslrootcert', sslrootcert)
  const cert = await read('sslcert', sslcert)
  const key = await read('sslkey', sslkey)
  try {
    return {
      // Without an authority, Node.js trusts those that it brings.
      secureContext: createSecureContext({ ca, cert, key }),
      rejectUnauthorized: sslmode === 'verify-full' || ca !== undefined,
      ...(sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }),
    }
  } catch (error) {
    throw new UnusableStore(
      'A file of sslrootcert, sslcert or sslkey of DATABASE_URL is no certificate or key ' +
        `in PEM form, or the key belongs to another certificate (${codeOf(error)}).`,
      { cause: error },
    )
  }
}

async function read(parameter: string, path: string | undefined): Promise<string | undefined> {
  try {
    return path === undefined ? undefined : await readFile(path, 'utf8')
  } catch (error) {
    throw new UnusableStore(
      `${parameter} of DATABASE_URL: the file ${path} cannot be read (${codeOf(error)}).`,
      { cause: error },
    )
  }
}

/** The message with which a client asks for TLS. The server answers with one letter. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** Encrypts a connection before anything else is sent on it, or throws `TlsFailure`. */
export async function encrypt(
  socket: Socket,
  { host }: Host,
  options: ConnectionOptions,
): Promise<TLSSocket> {
  try {
    socket.write(tlsRequest)
    const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
    // More than the letter would have been sent in between, before the encryption.
    if (String(answer) !== 'S') {
      throw new TlsFailure(String(answer) === 'N' ? 'TLS_REFUSED' : 'TLS_NO_ANSWER')
    }
    // The name of a server is never an IP address (RFC 6066, section 3).
    const name = isIP(host) === 0 ? { servername: host } : {}
    const encrypted = connect({ socket, host, ...name, ...options })
    await once(encrypted, 'secureConnect')
    return encrypted
  } catch (error) {
    throw error instanceof TlsFailure ? error : new TlsFailure(codeOf(error), error)
  }
}
