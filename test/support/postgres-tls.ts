import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { type Certificate, type CertificateOptions, issueCertificate } from './certificates.ts'
import {
  newCluster,
  openClient,
  type PostgresServer,
  query,
  startServer,
  writeForServer,
} from './postgres.ts'
import { waitUntil } from './wait.ts'

/** A PostgreSQL server that speaks TLS, and the authority that its clients may trust. */
export interface TlsServer extends AsyncDisposable {
  readonly server: PostgresServer
  readonly authority: Certificate
  /** The file with the certificate of the authority. */
  readonly authorityFile: string
  /** Shows another certificate from now on, one of the authority. */
  present(options: Omit<CertificateOptions, 'issuer' | 'subject'>): Promise<void>
  /** Writes a file that its owner alone may read. */
  writeFile(name: string, text: string): string
  /** Creates a database. */
  createDatabase(name: string): Promise<void>
  /** The address of a database. */
  toUrl(database: string, parameters?: Readonly<Record<string, string>>): string
}

const hosts = { names: ['localhost'], addresses: ['127.0.0.1'] }
const access = 'host all all 127.0.0.1/32 scram-sha-256'

/** Starts a server with TLS, with these lines before the others in its pg_hba.conf. */
export async function startTlsServer(...accessBefore: string[]): Promise<TlsServer> {
  const authority = issueCertificate({ subject: 'Authority of the tests' })
  const cluster = await newCluster()
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-tls-'))

  function writeToCluster(name: string, text: string): string {
    const path = join(dirname(cluster), name)
    writeForServer(path, text)
    return path
  }

  function writeCertificate(options: Partial<CertificateOptions>) {
    const issued = issueCertificate({ subject: 'Server', issuer: authority, ...hosts, ...options })
    return {
      ssl_cert_file: writeToCluster('server.crt', issued.certificate),
      ssl_key_file: writeToCluster('server.key', issued.key),
      fingerprint: issued.fingerprint,
    }
  }

  function writeFile(name: string, text: string): string {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }

  const { fingerprint, ...files } = writeCertificate({})
  const server = await startServer(cluster, {
    ...files,
    fsync: 'off',
    ssl: 'on',
    ssl_ca_file: writeToCluster('authority.crt', authority.certificate),
    hba_file: writeToCluster('pg_hba.conf', `${[...accessBefore, access].join('\n')}\n`),
  })
  const admin = server.toUrl('postgres?sslmode=require')

  return {
    server,
    authority,
    authorityFile: writeFile('authority.crt', authority.certificate),
    writeFile,
    async present(options) {
      const presented = writeCertificate(options)
      await query(admin, 'SELECT pg_reload_conf()')
      await waitUntil(
        async () => (await readFingerprint(admin)) === presented.fingerprint,
        'the server shows the certificate',
      )
    },
    async createDatabase(name) {
      await query(admin, `CREATE DATABASE ${name}`)
    },
    toUrl: (database, parameters = {}) =>
      server.toUrl(`${database}?${new URLSearchParams(parameters)}`),
    async [Symbol.asyncDispose]() {
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

/** The SHA-256 of the certificate that a server shows now. */
async function readFingerprint(url: string): Promise<string> {
  const client = await openClient(url)
  const { fingerprint256 } = (client.connection.stream as TLSSocket).getPeerCertificate()
  await client.end()
  return fingerprint256
}
