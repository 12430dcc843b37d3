import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { after, describe, it } from 'node:test'
import { connect as connectTls, createSecureContext, TLSSocket } from 'node:tls'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { ends } from '../cli/ends.ts'
import { issueCertificate } from '../support/certificates.ts'
import { runProcess } from '../support/command.ts'
import { findServer } from '../support/databases.ts'
import { newFolder } from '../support/folder.ts'
import { listen } from '../support/listen.ts'
import { password, query } from '../support/postgres.ts'
import { startTlsServer } from '../support/postgres-tls.ts'
import { isRefusal } from '../support/refusal.ts'
import { quiet } from '../support/stores.ts'

type Parameters = Readonly<Record<string, string>>

const tls = await startTlsServer(
  'local all all scram-sha-256',
  'hostnossl encrypted all 127.0.0.1/32 reject',
  'hostssl plain all 127.0.0.1/32 reject',
  'hostssl certified all 127.0.0.1/32 cert',
)
after(() => tls[Symbol.asyncDispose]())
for (const name of ['plants', 'encrypted', 'plain', 'certified']) await tls.createDatabase(name)

const stranger = issueCertificate({ subject: 'Another authority' })
const files = {
  authority: tls.authorityFile,
  otherAuthority: tls.writeFile('other.crt', stranger.certificate),
  nothing: join(newFolder(), 'nothing.crt'),
}

/**
 * Opens a store at this address and says whether every connection of it is encrypted, and none in
 * vain.
 */
async function findEncryption(url: string): Promise<'encrypted' | 'plain' | 'both'> {
  const connection = await openPrimary(url, quiet)
  try {
    await connection.session()?.pages((sql) => sql`SELECT 1`, 5_000)
    const rows = await query<{ ssl: boolean }>(
      tls.toUrl('postgres', { sslmode: 'require' }),
      `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
       WHERE application_name = 'plant-store' AND datname = '${new URL(url).pathname.slice(1)}'`,
    )
    if (rows.length !== 1) return 'both'
    return rows[0]?.ssl ? 'encrypted' : 'plain'
  } finally {
    await connection.close()
  }
}

async function refuses(url: string, message: RegExp): Promise<void> {
  const opening = openPrimary(url, quiet).then((connection) => connection.close())
  await assert.rejects(opening, isRefusal(message))
}

const byName = (url: string) => url.replace('@127.0.0.1:', '@localhost:')

describe('a TLS connection to PostgreSQL', () => {
  const modes: [database: string, sslmode: string | undefined, encryption: string][] = [
    ['plants', undefined, 'encrypted'],
    ['plants', 'disable', 'plain'],
    ['plants', 'allow', 'plain'],
    ['plants', 'prefer', 'encrypted'],
    ['plants', 'require', 'encrypted'],
    ['encrypted', 'allow', 'encrypted'],
    ['plain', 'prefer', 'plain'],
  ]
  for (const [database, sslmode, encryption] of modes) {
    it(`is ${encryption} with sslmode=${sslmode ?? '(absent)'} on ${database}`, async () => {
      const url = tls.toUrl(database, sslmode === undefined ? {} : { sslmode })
      assert.equal(await findEncryption(url), encryption)
    })
  }

  it('is refused where the server wants none, and where it wants one', async () => {
    await refuses(tls.toUrl('encrypted', { sslmode: 'disable' }), /see its pg_hba\.conf/)
    await refuses(tls.toUrl('plain', { sslmode: 'require' }), /see its pg_hba\.conf/)
  })

  it('is not used on a Unix socket, whatever is required', async () => {
    const { folder, port } = tls.server
    const at = `host=${dirname(folder)}&port=${port}&sslmode=verify-full`
    const url = `postgres://plants:${encodeURIComponent(password)}@/plants?${at}`
    // A server never speaks TLS there.
    await (await openPrimary(url, quiet)).close()
  })

  it('is not needed by default, and can be required', async () => {
    const url = `${await findServer()}postgres`
    await (await openPrimary(url, quiet)).close()
    await refuses(`${url}?sslmode=require`, /does not speak TLS/)
  })
})

describe('the certificate of a PostgreSQL server', () => {
  const unsigned = /No authority of sslrootcert has signed/
  const otherHost = /for another host/
  const expired = /has expired/
  const both = 'its name and its address'
  const certificates: Record<string, object> = {
    [both]: {},
    'its name only': { addresses: [] },
    'its address and another name': { names: ['db.example'] },
    'a time that is over': { expiresAt: Date.now() - 24 * 60 * 60 * 1000 },
  }
  let shown = both
  after(() => tls.present({}))

  type Root = keyof typeof files | 'none'
  type Case = [what: string, sslmode: string, Root, by: 'name' | 'address', refusal?: RegExp]
  const cases: Case[] = [
    [both, 'verify-full', 'authority', 'name'],
    [both, 'verify-full', 'authority', 'address'],
    [both, 'verify-ca', 'authority', 'address'],
    [both, 'require', 'authority', 'address'],
    [both, 'verify-full', 'otherAuthority', 'name', unsigned],
    [both, 'verify-ca', 'otherAuthority', 'name', unsigned],
    [both, 'require', 'otherAuthority', 'name', unsigned],
    ['its name only', 'verify-full', 'authority', 'name'],
    ['its name only', 'verify-ca', 'authority', 'address'],
    ['its name only', 'verify-full', 'authority', 'address', otherHost],
    ['its address and another name', 'verify-full', 'authority', 'address'],
    ['its address and another name', 'verify-ca', 'authority', 'name'],
    ['its address and another name', 'verify-full', 'authority', 'name', otherHost],
    ['a time that is over', 'require', 'none', 'name'],
    ['a time that is over', 'verify-full', 'authority', 'name', expired],
    ['a time that is over', 'verify-full', 'authority', 'address', expired],
    ['a time that is over', 'verify-ca', 'authority', 'name', expired],
    ['a time that is over', 'require', 'authority', 'name', expired],
  ]
  for (const [what, sslmode, authority, by, refusal] of cases) {
    const verb = refusal ? 'refused' : 'accepted'
    it(`for ${what} is ${verb} by ${by} with ${sslmode} and the file ${authority}`, async () => {
      if (what !== shown) await tls.present(certificates[what] ?? {})
      shown = what
      const root = authority === 'none' ? {} : { sslrootcert: files[authority] }
      const byAddress = tls.toUrl('plants', { sslmode, ...root })
      const url = by === 'name' ? byName(byAddress) : byAddress
      if (refusal) await refuses(url, refusal)
      else assert.equal(await findEncryption(url), 'encrypted')
    })
  }
})

describe('the certificate of the service', () => {
  const parameters = (name: string, subject: string, issuer = tls.authority) => {
    const { certificate, key } = issueCertificate({ subject, issuer })
    return {
      sslmode: 'require',
      sslcert: tls.writeFile(`${name}.crt`, certificate),
      sslkey: tls.writeFile(`${name}.key`, key),
    }
  }

  it('lets it in without a password where the server asks for one', async () => {
    const url = tls.toUrl('certified', parameters('right', 'plants'))
    assert.equal(await findEncryption(url.replace(/:[^:@/]+@/, '@')), 'encrypted')
  })

  it('is refused when it is for another user, of another authority, or absent', async () => {
    await refuses(tls.toUrl('certified', parameters('user', 'other')), /pg_hba\.conf/)
    await refuses(tls.toUrl('certified', parameters('signed', 'plants', stranger)), /over TLS/)
    await refuses(tls.toUrl('certified', { sslmode: 'require' }), /pg_hba\.conf/)
  })
})

describe('a password that is bound to the TLS connection', () => {
  it('is of no use to a server in between, which could pass it on', async () => {
    const url = new URL(tls.toUrl('plants', { sslmode: 'require' }))
    url.port = String(await openMiddle(Number(url.port)))
    await (await openPrimary(url.href, quiet)).close()
    for (const binding of ['prefer', 'require']) {
      await refuses(
        `${url.href}&channel_binding=${binding}`,
        /does not let the user of DATABASE_URL in/,
      )
    }
  })

  it('is accepted in an address as hosting companies print it', async () => {
    const url = tls.toUrl('plants', { sslmode: 'require', channel_binding: 'require' })
    assert.equal(await findEncryption(url), 'encrypted')
  })
})

/** Listens in front of a server, decrypts what comes and encrypts it again. Returns its port. */
async function openMiddle(port: number): Promise<number> {
  const { certificate: cert, key } = issueCertificate({ subject: 'In between' })
  const secureContext = createSecureContext({ cert, key })
  const askForTls = Buffer.from('0000000804d2162f', 'hex')
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      socket.on('error', () => {})
      socket.on('close', () => [client, upstream].map((one) => one.destroy()))
    }
    client.once('data', () => {
      upstream.write(askForTls)
      upstream.once('data', () => {
        const inner = connectTls({ socket: upstream, rejectUnauthorized: false })
        const outer = new TLSSocket(client, { isServer: true, secureContext })
        for (const socket of [inner, outer]) socket.on('error', () => {})
        outer.pipe(inner).pipe(outer)
        client.write('S')
      })
    })
  })
  return Number(new URL(await listen(server)).port)
}

describe('the files of TLS', () => {
  it('are those of the machine or of Node.js, where the address names none', async () => {
    const folder = newFolder()
    const list = async (parameters: Parameters, env: Parameters) => {
      const url = byName(tls.toUrl('plants', parameters))
      return (await runProcess(['token', 'list', '--database', url], { folder, env })).exitCode
    }
    const system = { sslrootcert: 'system' }
    assert.equal(await list(system, { SSL_CERT_FILE: files.authority }), 0)
    assert.equal(await list(system, { SSL_CERT_FILE: files.otherAuthority }), 78)
    const full = { sslmode: 'verify-full' }
    const trusting = { NODE_EXTRA_CA_CERTS: files.authority }
    assert.equal(await list(full, trusting), 0)
    assert.equal(await list(full, {}), 78)
    // An empty file names nobody.
    const nobody = { ...full, sslrootcert: tls.writeFile('empty.crt', '') }
    assert.equal(await list(nobody, trusting), 78)
  })

  const mistakes: [title: string, parameters: () => Parameters, message: RegExp][] = [
    [
      'a file that is not there',
      () => ({ sslmode: 'verify-ca', sslrootcert: files.nothing }),
      /sslrootcert, .* of DATABASE_URL: .*nothing\.crt cannot be read \(ENOENT\)/,
    ],
    [
      'a file that holds no certificate',
      () => ({ sslmode: 'verify-ca', sslrootcert: tls.writeFile('empty.crt', 'nothing') }),
      /No authority of sslrootcert has signed/,
    ],
    [
      'a key of another certificate',
      () => ({
        sslmode: 'require',
        sslcert: files.authority,
        sslkey: tls.writeFile('other.key', issueCertificate({ subject: 'x' }).key),
      }),
      /the key belongs to another certificate/,
    ],
  ]
  for (const [title, parameters, message] of mistakes) {
    it(`end a start with one line and 78: ${title}`, async () => {
      const env = { PORT: '0', DATABASE_URL: tls.toUrl('plants', parameters()) }
      const oneLine = new RegExp(`^(?=.*(?:${message.source}))[^\n]+\n$`)
      assert.equal(await ends('serve', 78, oneLine, { folder: newFolder(), env }), '')
    })
  }
})
