import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { connect as connectTls, createSecureContext, TLSSocket } from 'node:tls'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { UnusableStore } from '../../src/store/store.ts'
import { issueCertificate } from '../support/certificates.ts'
import { run, runProcess } from '../support/command.ts'
import { findServer } from '../support/databases.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import { startTlsServer, type TlsServer } from '../support/postgres-tls.ts'
import { releaseAfterTest } from '../support/release.ts'

const quiet = { onLost() {}, onFound() {} }
type Parameters = Readonly<Record<string, string>>

let tls: TlsServer
const files = { authority: '', otherAuthority: '', nothing: '' }

before(async () => {
  tls = await startTlsServer(
    'hostnossl encrypted all 127.0.0.1/32 reject',
    'hostssl plain all 127.0.0.1/32 reject',
    'hostssl certified all 127.0.0.1/32 cert',
  )
  for (const name of ['plants', 'encrypted', 'plain', 'certified']) await tls.createDatabase(name)
  files.authority = tls.authorityFile
  files.otherAuthority = tls.writeFile(
    'other.crt',
    issueCertificate({ subject: 'Another authority' }).certificate,
  )
  files.nothing = join(newFolder(), 'nothing.crt')
})
after(() => tls[Symbol.asyncDispose]())

/**
 * Opens a store at this address and says whether every connection of it is encrypted, and none in
 * vain.
 */
async function findEncryption(url: string): Promise<'encrypted' | 'plain' | 'both'> {
  const connection = await openPrimary(url, quiet)
  try {
    await connection.session()?.pages.run((sql) => sql`SELECT 1`, 5_000)
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
  await assert.rejects(
    openPrimary(url, quiet).then((connection) => connection.close()),
    (error) =>
      error instanceof UnusableStore && message.test(error.message) && !/\n/.test(error.message),
  )
}

const byName = (url: string) => url.replace('@127.0.0.1:', '@localhost:')
const byAddress = (url: string) => url

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

  it('is not needed by default, and can be required', async () => {
    const url = `${await findServer()}postgres`
    await (await openPrimary(url, quiet)).close()
    await refuses(`${url}?sslmode=require`, /does not speak TLS/)
  })
})

describe('the certificate of a PostgreSQL server', () => {
  type Case = [title: string, toUrl: (url: string) => string, parameters: () => Parameters]
  const trusted = (sslmode: string) => () => ({ sslmode, sslrootcert: files.authority })
  const untrusted = (sslmode: string) => () => ({ sslmode, sslrootcert: files.otherAuthority })
  const yesterday = Date.now() - 24 * 60 * 60 * 1000

  const shown: [what: string, options: object, accepted: Case[], refused: [...Case, RegExp][]][] = [
    [
      'for its name and its address',
      {},
      [
        ['verify-full, by name', byName, trusted('verify-full')],
        ['verify-full, by address', byAddress, trusted('verify-full')],
        ['verify-ca', byAddress, trusted('verify-ca')],
        ['require with an authority', byAddress, trusted('require')],
      ],
      [
        ['verify-full', byName, untrusted('verify-full'), /No authority of sslrootcert has signed/],
        ['verify-ca', byName, untrusted('verify-ca'), /No authority of sslrootcert has signed/],
        ['require', byName, untrusted('require'), /No authority of sslrootcert has signed/],
      ],
    ],
    [
      'for its name only',
      { addresses: [] },
      [
        ['verify-full, by name', byName, trusted('verify-full')],
        ['verify-ca, by address', byAddress, trusted('verify-ca')],
      ],
      [['verify-full, by address', byAddress, trusted('verify-full'), /for another host/]],
    ],
    [
      'for its address and another name',
      { names: ['db.example'] },
      [
        ['verify-full, by address', byAddress, trusted('verify-full')],
        ['verify-ca, by name', byName, trusted('verify-ca')],
      ],
      [['verify-full, by name', byName, trusted('verify-full'), /for another host/]],
    ],
    [
      'that has expired',
      { expiresAt: yesterday },
      [['require', byName, () => ({ sslmode: 'require' })]],
      [
        ['verify-full, by name', byName, trusted('verify-full'), /has expired/],
        ['verify-full, by address', byAddress, trusted('verify-full'), /has expired/],
        ['verify-ca', byName, trusted('verify-ca'), /has expired/],
        ['require with an authority', byName, trusted('require'), /has expired/],
      ],
    ],
  ]
  for (const [what, options, accepted, refused] of shown) {
    describe(what, () => {
      before(() => tls.present(options))
      after(() => tls.present({}))
      for (const [title, toUrl, parameters] of accepted) {
        it(`is accepted with ${title}`, async () => {
          assert.equal(await findEncryption(toUrl(tls.toUrl('plants', parameters()))), 'encrypted')
        })
      }
      for (const [title, toUrl, parameters, message] of refused) {
        it(`is refused with ${title}`, async () => {
          await refuses(toUrl(tls.toUrl('plants', parameters())), message)
        })
      }
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
    const stranger = issueCertificate({ subject: 'Another authority' })
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
  }).listen(0, '127.0.0.1')
  releaseAfterTest(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
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
    assert.equal(await list(full, { NODE_EXTRA_CA_CERTS: files.authority }), 0)
    assert.equal(await list(full, {}), 78)
  })

  const mistakes: [title: string, parameters: () => Parameters, message: RegExp][] = [
    ['an unknown sslmode', () => ({ sslmode: 'on' }), /sslmode of DATABASE_URL must be disable, /],
    ['an empty one', () => ({ sslmode: '' }), /sslmode of DATABASE_URL is empty/],
    ['an unknown parameter', () => ({ sslrootcerts: 'x' }), /unknown parameter sslrootcerts: /],
    [
      'an authority that is not looked at',
      () => ({ sslrootcert: files.authority }),
      /sslmode=prefer checks no certificate/,
    ],
    [
      'the authorities of the machine without a check of the name',
      () => ({ sslmode: 'require', sslrootcert: 'system' }),
      /needs sslmode=verify-full/,
    ],
    [
      'a file that is not there',
      () => ({ sslmode: 'verify-ca', sslrootcert: files.nothing }),
      /sslrootcert of DATABASE_URL: the file .*nothing\.crt cannot be read \(ENOENT\)/,
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
      const { exitCode, stdout, stderr } = await run(['serve'], { folder: newFolder(), env })
      assert.match(stderr, message)
      assert.match(stderr, /^[^\n]+\n$/)
      assert.equal(stdout, '')
      assert.equal(exitCode, 78)
    })
  }
})
