import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { refusalReasons } from '../../src/contract/errors.ts'
import { startService } from '../support/service.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const metricName = /\b(?:plant_store|process|nodejs)_[a-z_]+[a-z]/g

const service = await startService('sqlite::memory:')
const { body } = await service.call({ path: '/metrics' })
const names = new Set([...body.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name))

describe('the metrics', () => {
  it('are all in the docs, which list no others', () => {
    const listed = read('docs/watching.md').match(/^\| `(?:plant_store|process|nodejs)_.*$/gm) ?? []
    const cells = listed.map((line) => line.split('|')[1] ?? '')
    const documented = new Set(cells.flatMap((cell) => cell.match(metricName) ?? []))
    assert.deepEqual([...documented].sort(), [...names].sort())
  })

  it('name every reason of a refusal in the docs', () => {
    const [row = ''] = read('docs/watching.md').match(/^\| `plant_store_refusals_total.*$/m) ?? []
    const unnamed = refusalReasons.filter((reason) => !row.includes(`\`${reason}\``))
    assert.deepEqual(unnamed, [])
  })

  it('have alerts, each with what to do about it', () => {
    const alerts = [...read('deploy/alerts.yml').matchAll(/alert: (\w+)/g)].map(([, name]) => name)
    const rows = [...read('docs/watching.md').matchAll(/^\| .*?`PlantStore.* \|/gm)]
    const explained = rows.flatMap(([row]) => row.split(' | ')[0]?.match(/PlantStore\w+/g) ?? [])
    assert.deepEqual(explained, alerts)
  })

  for (const file of ['deploy/alerts.yml', 'deploy/dashboard.json']) {
    it(`include every one that ${file} uses`, () => {
      const used = read(file).match(metricName) ?? []
      assert.ok(used.length > 10)
      const base = (name: string) => name.replace(/_(bucket|sum|count)$/, '')
      const unknown = used.filter((name) => !names.has(name) && !names.has(base(name)))
      assert.deepEqual(unknown, [])
    })
  }
})
