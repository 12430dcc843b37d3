import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { type CertificateOptions, issueCertificate } from './certificates.ts'
import { newCluster, openClient, query, startServer, writeForServer } from './postgres.ts'
import { waitUntil } from './wait.ts'

const hosts = { names: ['localhost'], addresses: ['127.0.0.1'] }
const access = 'host all all 127.0.0.1/32 scram-sha-256'

/**
 * Starts a server with TLS, with these lines before the others in its pg_hba.conf, and an authority
 * that its clients may trust.
 */
export async function startTlsServer(...accessBefore: string[]) {
  const authority = issueCertificate({ subject: 'Authority of the tests' })
  const cluster = await newCluster()
  let presented: string
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-tls-'))

  function writeToCluster(name: string, text: string): string {
    const path = join(dirname(cluster), name)
    writeForServer(path, text)
    return path
  }

  function writeCertificate(options: Partial<CertificateOptions>) {
    const issued = issueCertificate({ subject: 'Server', issuer: authority, ...hosts, ...options })
    presented = new X509Certificate(issued.certificate).fingerprint256
    return {
      ssl_cert_file: writeToCluster('server.crt', issued.certificate),
      ssl_key_file: writeToCluster('server.key', issued.key),
    }
  }

  /** Writes a file that its owner alone may read. */
  function writeFile(name: string, text: string): string {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }

  const server = await startServer(cluster, {
    ...writeCertificate({}),
    fsync: 'off',
    ssl: 'on',
    ssl_ca_file: writeToCluster('authority.crt', authority.certificate),
    hba_file: writeToCluster('pg_hba.conf', `${[...accessBefore, access].join('\n')}\n`),
  })
  const admin = server.toUrl('postgres?sslmode=require')

  return {
    server,
    authority,
    /** The file with the certificate of the authority. */
    authorityFile: writeFile('authority.crt', authority.certificate),
    writeFile,
    /** Shows another certificate from now on, one of the authority. */
    async present(options: Omit<CertificateOptions, 'issuer' | 'subject'>): Promise<void> {
      writeCertificate(options)
      await query(admin, 'SELECT pg_reload_conf()')
      await waitUntil(async () => {
        const client = await openClient(admin)
        const shown = (client.connection.stream as TLSSocket).getPeerCertificate()
        await client.end()
        return shown.fingerprint256 === presented
      }, 'the server shows the certificate')
    },
    async createDatabase(name: string): Promise<void> {
      await query(admin, `CREATE DATABASE ${name}`)
    },
    toUrl: (database: string, parameters: Readonly<Record<string, string>> = {}) =>
      server.toUrl(`${database}?${new URLSearchParams(parameters)}`),
    async [Symbol.asyncDispose](): Promise<void> {
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}
