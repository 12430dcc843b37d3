import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildAnswerReader } from '../../bench/answers.ts'
import { isGeneratorBound } from '../../bench/figures.ts'
import { judge } from '../../bench/section.ts'
import { describeComparison } from '../../bench/sections/throughput.ts'
import type { Series } from '../../bench/slices.ts'

const plain = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'

function fail(reason: string): never {
  throw new Error(reason)
}

function newSeries(perSecond: number[], [generator, system]: [number, number]): Series {
  const rounds = { perSecond, p50Ms: [], p99Ms: [], cpuUs: perSecond, rssMb: [] }
  return {
    system: 'echo',
    rounds,
    readP99Ms: [],
    generatorShare: [generator],
    systemShare: [system],
    otherShare: [0.02],
  }
}

describe('the load generator of the benchmark', () => {
  for (const [title, one] of Object.entries({ plain, chunked })) {
    it(`finds the end of each ${title} answer, wherever they are split`, () => {
      const bytes = Buffer.from(one.repeat(4))
      for (let cut = 1; cut < bytes.length; cut++) {
        const read = buildAnswerReader(200, fail)
        const connection = {}
        const parts = [bytes.subarray(0, cut), bytes.subarray(cut), bytes]
        const [first = 0, second = 0, whole] = parts.map((part) =>
          read(connection, part, part.length),
        )
        assert.deepEqual([first, first + second, whole], [Math.floor(cut / one.length), 4, 4])
      }
    })
  }

  it('ends the run at an answer with another status, even one of the usual length', () => {
    const read = buildAnswerReader(200, fail)
    const wrong = plain.replace('200 OK', '503 No')
    assert.equal(read({}, Buffer.from(plain), plain.length), 1)
    assert.throws(() => read({}, Buffer.from(wrong), wrong.length), /not 200: HTTP\/1.1 503/)
  })
})

it('the benchmark refuses to compare a rate that the generator limited', () => {
  const bound = newSeries([10], [0.97, 0.7])
  assert.equal(isGeneratorBound(bound), true)
  assert.equal(isGeneratorBound(newSeries([], [0.97, 1])), false)
  const text = describeComparison({ workload: 'create', connections: 64, series: [bound] })
  assert.match(text, /\| bare echo \| +10\.0 \| generator-bound \|/)
  const target = { title: '', value: 2, bound: { min: 1 } }
  assert.equal(judge(target), 'reached')
  assert.equal(judge({ ...target, refused: 'generator-bound' }), 'refused')
  assert.equal(judge({ ...target, bound: { max: 1 } }), 'not reached')
})
