import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type FileName, foreign, plants, readable, toPath } from '../spreadsheet/files.ts'
import { run } from '../support/command.ts'
import { engines } from '../support/engines.ts'
import { newFolder } from '../support/folder.ts'
import { authorized, startService, type TestService } from '../support/service.ts'

const all = `[${plants.join(',')}]`

function send(service: TestService, name: FileName) {
  const headers = { ...authorized, 'Content-Type': 'text/csv' }
  const body = readFileSync(toPath(name))
  return service.call({ method: 'POST', path: '/plants.csv', headers, body })
}

for (const engine of engines) {
  describe(`a file of a spreadsheet, on ${engine.name},`, () => {
    for (const name of readable) {
      it(`is imported as it is: ${name}`, async () => {
        const service = await startService(await engine.newUrl())
        const answer = await send(service, name)
        assert.match(answer.body, /"stored":4,.*"refusedInAll":0/)
        assert.equal((await service.call({ path: '/plants' })).body, all)
      })
    }

    it('that is not UTF-8 is refused, with how to save it', async () => {
      const service = await startService(await engine.newUrl())
      const { status, body } = await send(service, foreign)
      assert.equal(status, 400)
      assert.match(
        body,
        /UTF-8\. Save the file as \\"CSV UTF-8 .* in Excel, .*LibreOffice\. Nothing/,
      )
    })
  })
}

describe('plant-store import of a file of a spreadsheet', () => {
  for (const name of readable) {
    it(`stores ${name} in a store`, async () => {
      const folder = newFolder()
      assert.equal((await run(['import', toPath(name), '--create'], { folder })).exitCode, 0)
      const { stdout } = await run(['export', '--quiet'], { folder })
      assert.equal(stdout, `${plants.join('\n')}\n`)
    })
  }
})
