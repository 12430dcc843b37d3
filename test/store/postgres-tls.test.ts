import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openPrimary } from '../../src/store/postgres/primary.ts'
import { UnusableStore } from '../../src/store/store.ts'
import { issueCertificate } from '../support/certificates.ts'
import { run, runProcess } from '../support/command.ts'
import { findServer } from '../support/databases.ts'
import { newFolder } from '../support/folder.ts'
import { query } from '../support/postgres.ts'
import { startTlsServer, type TlsServer } from '../support/postgres-tls.ts'

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

  it('is not used with a key that other users can read', async () => {
    const open = parameters('open', 'plants')
    chmodSync(open.sslkey, 0o644)
    await refuses(tls.toUrl('certified', open), /other users can read the file .*open\.key/)
  })
})

describe('the files of TLS', () => {
  it('are found where libpq has them, or are those of the machine', async () => {
    const folder = newFolder()
    const list = (parameters: Parameters, env: Parameters) => {
      const url = byName(tls.toUrl('plants', parameters))
      return runProcess(['token', 'list', '--database', url], {
        folder,
        env: { HOME: folder, ...env },
      })
    }
    const missing = await list({ sslmode: 'verify-full' }, {})
    assert.equal(missing.exitCode, 78)
    assert.match(missing.stderr, /^--database has sslmode=verify-full, but names no authority.*\n$/)
    const system = { sslrootcert: 'system' }
    assert.equal((await list(system, { SSL_CERT_FILE: files.authority })).exitCode, 0)
    assert.equal((await list(system, { SSL_CERT_FILE: files.otherAuthority })).exitCode, 78)
    mkdirSync(join(folder, '.postgresql'))
    writeFileSync(join(folder, '.postgresql', 'root.crt'), tls.authority.certificate)
    assert.equal((await list({ sslmode: 'verify-full' }, {})).exitCode, 0)
  })

  const mistakes: [title: string, parameters: () => Parameters, message: RegExp][] = [
    ['an unknown sslmode', () => ({ sslmode: 'on' }), /sslmode of DATABASE_URL must be disable, /],
    ['an empty one', () => ({ sslmode: '' }), /sslmode of DATABASE_URL is empty/],
    ['an unknown parameter', () => ({ sslrootcerts: 'x' }), /unknown parameter sslrootcerts: /],
    ['ssl=no', () => ({ ssl: 'no' }), /ssl of DATABASE_URL must be true/],
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
      /is no certificate or key in PEM form/,
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
