import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { run, start } from '../support/command.ts'
import { newFolder } from '../support/folder.ts'
import { startService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'
import { ends, newStore } from './ends.ts'

/** A folder with a store at the default path, and a backup of it. */
async function newBackup() {
  const folder = await newStore('{"id":1,"name":"one"}\n{"id":2,"name":"two"}\n')
  await ends('backup good.db --quiet', 0, '', folder)
  return { folder, backup: readFileSync(join(folder, 'good.db')) }
}

describe('plant-store restore', () => {
  it('leaves the store of another restore alone that was quicker', async () => {
    const { folder, backup } = await newBackup()
    const to = ['--database', 'sqlite:new/plants.db']
    const slow = start(['restore', '-', ...to], { folder, input: '', isInputOpen: true })
    await waitUntil(() => existsSync(join(folder, 'new')), 'the slow one has made the folder')
    await ends(['restore', 'good.db', ...to], 0, /^Restored/, folder)
    slow.child.stdin?.end(backup)
    const { exitCode, stderr } = await slow.ended
    assert.equal(stderr, 'Cannot write new/plants.db: it exists already and was not changed.\n')
    assert.equal(exitCode, 73)
    assert.deepEqual(readdirSync(join(folder, 'new')), ['plants.db'])
  })

  it('leaves no folder behind when it cannot make the next one', async () => {
    const { folder } = await newBackup()
    const database = `sqlite:new/${'x'.repeat(300)}/plants.db`
    await ends(`restore good.db --database ${database}`, 73, /the name is too long/, folder)
    assert.equal(existsSync(join(folder, 'new')), false)
  })
})

/** Creates plants at a service on this store, and answers its positions, the oldest first. */
async function createAt(url: string, ids: readonly number[]): Promise<string[]> {
  const service = await startService(url)
  for (const id of ids) await service.create(JSON.stringify({ id, name: 'x' }))
  const { body } = await service.call({ path: '/events' })
  await service.close()
  return JSON.parse(body).map(({ position }: { position: string }) => position)
}

it('the journal of a restored store has the changes of the backup and no later position', async () => {
  const folder = newFolder()
  const url = `sqlite:${join(folder, 'plants.db')}`
  await createAt(url, [1, 2])
  await ends(['backup', 'good.db', '--database', url], 0, /./, folder)
  const before = await createAt(url, [3, 4])
  assert.equal(before.length, 4)
  rmSync(join(folder, 'plants.db'))
  await ends(['restore', 'good.db', '--database', url], 0, /./, folder)
  // The new changes have the numbers of those that are lost.
  for (const ids of [[], [5, 6]]) {
    const now = await createAt(url, ids)
    const service = await startService(url)
    for (const position of before) {
      const { status, body } = await service.call({ path: `/events?after=${position}` })
      assert.equal(status, 410)
      assert.equal(JSON.parse(body).error, 41000)
    }
    const { body } = await service.call({ path: `/events?after=${now[0]}` })
    const rest = JSON.parse(body).map(({ plant }: { plant: { id: number } }) => plant.id)
    assert.deepEqual(rest, [2, ...ids])
    await service.close()
  }
})

for (const command of ['export', 'token list', 'backup b.db', 'serve --port 0']) {
  it(`a store that is damaged is reported in one line, without a stack trace: ${command}`, async () => {
    const { folder } = await newBackup()
    const path = join(folder, 'data/plant-store.db')
    writeFileSync(path, readFileSync(path).fill(0xaa, 4_096))
    const { exitCode, stderr } = await run(command.split(' '), { folder })
    const lines = stderr.split('\n').filter((line) => !line.includes('"listening"'))
    assert.match(
      lines.join('\n'),
      /^[^\n]* is damaged[;:][^\n]* [Rr]estore (a|its last) backup\.\n$/,
    )
    assert.ok(exitCode === 74 || exitCode === 78, `ended with ${exitCode}`)
  })
}
