import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { isStorable } from '../../src/contract/values.ts'
import { anyCharacter } from '../support/characters.ts'
import { engines } from '../support/engines.ts'
import { startService, type TestService } from '../support/service.ts'

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const text = fc.string({ unit: anyCharacter, maxLength: 100 }).filter(isStorable)
const spaces = fc.constantFrom('', ' ', '\n', '\t', '\r\n  ')

/** Writes a text as JSON, with some of its characters escaped. */
const jsonText = (value: string, escapes: boolean[]) =>
  `"${Array.from(value, (character, index) =>
    escapes[index % escapes.length] || /["\\\p{Cc}]/u.test(character)
      ? Array.from(
          { length: character.length },
          (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`,
        ).join('')
      : character,
  ).join('')}"`

for (const engine of engines) {
  describe(`any plant on ${engine.name}`, () => {
    let service: TestService
    before(async () => {
      service = await startService(await engine.newUrl())
    })

    it('comes back byte for byte, however its JSON was written', async () => {
      await fc.assert(
        fc.asyncProperty(
          int64,
          text,
          fc.option(text, { nil: undefined }),
          fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }),
          spaces,
          async (id, name, tag, escapes, space) => {
            const members = [`"id"${space}:${id}`, `${space}"name":${jsonText(name, escapes)}`]
            if (tag !== undefined) members.unshift(`"tag":${space}${jsonText(tag, escapes)}`)
            const created = await service.create(`${space}{${members.join(`${space},`)}}${space}`)
            // A random id may come twice; the first plant stays then.
            if (created.status === 409) return
            const plant = tag === undefined ? { name } : { name, tag }
            assert.equal(created.status, 200, created.body)
            assert.equal(created.body, JSON.stringify(plant))
            const got = await service.call({ path: `/plants/${id}` })
            assert.equal(got.body, `{"id":${id},${JSON.stringify(plant).slice(1)}`)
            assert.equal(got.headers.get('etag'), created.headers.get('etag'))
          },
        ),
        { numRuns: 75 },
      )
    })

    it('is refused or stored and never breaks the service, whatever its body is', async () => {
      const anything = fc.oneof(
        fc.json({ maxDepth: 3 }),
        fc.string({ unit: anyCharacter }),
        fc
          .record({ id: fc.jsonValue(), name: fc.jsonValue() })
          .map((value) => JSON.stringify(value)),
      )
      await fc.assert(
        fc.asyncProperty(anything, async (body) => {
          const { status, body: content } = await service.create(Buffer.from(body))
          assert.ok([200, 400, 409].includes(status), `${status} ${content}`)
          if (status !== 200)
            assert.deepEqual(Object.keys(JSON.parse(content)), ['error', 'message'])
        }),
        { numRuns: 75 },
      )
    })
  })
}
