/**
 * The unit and the timers under a running systemd, on a fresh Debian 12. It needs root,
 * systemd-nspawn and debootstrap, and takes a few minutes.
 */
import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { waitUntil } from '../support/wait.ts'
import { bootMachine, copyInto, type Machine } from './machine.ts'
import { findMissing, must } from './needs.ts'
import { startWriter } from './writer.ts'

const missing = findMissing('root', 'systemd-nspawn', 'debootstrap', 'nsenter')
/** The machine, or why there is none. */
const booted =
  missing ||
  (await bootMachine().catch((error: Error) => `systemd does not boot: ${error.message}`))
const skip = typeof booted === 'string' && booted

const checkout = join(import.meta.dirname, '..', '..')
const unit = readFileSync(join(checkout, 'deploy/plant-store.service'), 'utf8')
/** The steps of the unit's comment, word for word. */
const steps = [...unit.matchAll(/^# {3}(\S.*)$/gm)].map(([, step = '']) => step)
const database = 'sqlite:/var/lib/plant-store/plant-store.db'
const url = 'http://127.0.0.1:3000'

describe('plant-store under systemd', { skip }, () => {
  let machine: Machine
  let token = ''
  let nextId = 1

  before(async () => {
    assert.ok(typeof booted === 'object')
    machine = booted
    const executable = join(machine.root, 'root/dist/plant-store')
    must(process.execPath, [join(checkout, 'build/executable.ts'), '--output', executable])
    copyInto(machine.root, join(checkout, 'deploy'), 'root/deploy')
  })

  const ask = (property: string, name = 'plant-store') =>
    machine.run(`systemctl show --value --property ${property} ${name}`).trim()
  const readJournal = (name: string) =>
    machine.run(`journalctl --no-pager --output cat --unit ${name}`)
  const settings = () => join(machine.root, 'etc/plant-store.env')
  const asService = (command: string) =>
    machine.run(`runuser -u plant-store -- plant-store ${command} --database ${database}`)

  /** Starts a writer whose ids no other test has used. */
  function write() {
    nextId += 1_000_000
    return startWriter({ url, token, firstId: nextId }, machine.inNetwork)
  }

  it('is installed by the steps of the unit', () => {
    assert.equal(steps.length, 7)
    const [made = '', ...more] = machine.run(steps.join('\n')).trim().split('\n')
    assert.match(made, /^plst_\w{36}$/)
    assert.deepEqual(more, [])
    token = made
    assert.deepEqual(
      ['plant-store', 'plant-store-backup.timer', 'plant-store-check.timer'].map((name) =>
        ask('ActiveState', name),
      ),
      ['active', 'active', 'active'],
    )
    assert.equal(machine.run('stat --format "%a %U" /var/lib/plant-store'), '700 plant-store\n')
    assert.equal(machine.run('stat --format "%a %U" /etc/plant-store.env'), '600 root\n')
  })

  it('leaves no token in the journal, but the way to make one', () => {
    const journal = machine.run('journalctl --no-pager --output cat')
    assert.doesNotMatch(journal, /plst_/)
    assert.match(journal, /^ {2}TOKEN=\$\(\/usr\/local\/bin\/plant-store token create --name me /m)
  })

  it('loses no acknowledged plant by restarts under load', async () => {
    const writer = write()
    for (let restarts = 0; restarts < 3; restarts++) {
      await writer.more(300)
      machine.run('systemctl restart plant-store')
    }
    await writer.more(300)
    await writer.stop()
    writer.requireStored(asService('export -'), '3 restarts')
    assert.equal(
      readJournal('plant-store').match(/every accepted request was answered/g)?.length,
      3,
    )
    assert.equal(ask('NRestarts'), '0')
  })

  it('is restarted after kill -9, and has lost nothing', async () => {
    const writer = write()
    await writer.more(300)
    machine.run(`kill -KILL ${ask('MainPID')}`)
    await waitUntil(() => ask('NRestarts') === '1', 'systemd has restarted the service')
    await writer.more(300)
    await writer.stop()
    writer.requireStored(asService('export -'), 'kill -9')
  })

  const wrong: [setting: string, message: RegExp][] = [
    ['PORT=abc', /^PORT must be a number from 0 to 65535\.$/m],
    ['DATABASE_URL=sqlite:/etc/plants.db', /^Cannot open the database \/etc\/plants\.db: /m],
  ]
  for (const [setting, message] of wrong) {
    it(`is not restarted after a wrong configuration: ${setting}`, () => {
      writeFileSync(settings(), `${setting}\n`)
      assert.throws(() => machine.run('systemctl restart plant-store'))
      const state = ['ActiveState', 'ExecMainStatus', 'NRestarts'].map((name) => ask(name))
      assert.deepEqual(state, ['failed', '78', '0'])
      assert.match(readJournal('plant-store'), message)
      rmSync(settings())
      machine.run('systemctl restart plant-store')
    })
  }

  it('fails to start, and is tried again, when the service never gets ready', async () => {
    const folder = '/run/systemd/system/plant-store.service.d'
    machine.run(`mkdir -p ${folder}
printf '[Service]\\nExecStart=\\nExecStart=/bin/sleep infinity\\n' > ${folder}/hang.conf
systemctl daemon-reload`)
    assert.throws(() => machine.run('systemctl restart plant-store'), /control process exited/)
    assert.match(readJournal('plant-store'), /^http:\/\/127\.0\.0\.1:3000 is not ready: .*\.$/m)
    await waitUntil(() => ask('NRestarts') === '1', 'systemd tries again')
    machine.run(`rm -r ${folder}
systemctl daemon-reload
systemctl restart plant-store`)
    assert.equal(ask('ActiveState'), 'active')
  })

  it('is backed up by its timer, with 14 backups kept, and restored from one', () => {
    const folder = '/var/lib/plant-store-backups'
    assert.equal(ask('Unit', 'plant-store-backup.timer'), 'plant-store-backup.service')
    machine.run(
      'for each in $(seq 15); do systemctl start plant-store-backup; systemctl reset-failed; done',
    )
    const [first = '', ...more] = machine.run(`ls ${folder}`).trim().split('\n')
    assert.equal(more.length, 13)
    assert.equal(machine.run(`stat --format '%a %U' ${folder}/${first}`), '600 plant-store\n')
    assert.match(readJournal('plant-store-backup'), /^Removed: 1 older backup\.$/m)
    machine.run(`plant-store restore ${folder}/${first} --database sqlite:/var/tmp/restored.db`)
    const restored = machine.run('plant-store export --database sqlite:/var/tmp/restored.db')
    assert.equal(restored, asService('export -'))
  })

  it('is checked by its timer, and the unit fails when there is something to do', () => {
    assert.equal(ask('Unit', 'plant-store-check.timer'), 'plant-store-check.service')
    machine.run('systemctl start plant-store-check')
    assert.equal(ask('Result', 'plant-store-check'), 'success')
    machine.run('chmod 644 /var/lib/plant-store/plant-store.db')
    assert.throws(() => machine.run('systemctl start plant-store-check'))
    assert.equal(ask('ExecMainStatus', 'plant-store-check'), '1')
    assert.match(readJournal('plant-store-check'), /permissions/)
  })

  it('is started again with the machine', () => {
    assert.equal(ask('UnitFileState'), 'enabled')
    assert.equal(ask('UnitFileState', 'plant-store-backup.timer'), 'enabled')
    assert.equal(ask('UnitFileState', 'plant-store-check.timer'), 'enabled')
  })
})
