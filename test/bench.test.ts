import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildAnswerReader } from '../bench/answers.ts'
import { isGeneratorBound, ratio, toFigure } from '../bench/figures.ts'
import { judge } from '../bench/section.ts'
import type { Series } from '../bench/slices.ts'

const plain = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'

function fail(reason: string): never {
  throw new Error(reason)
}

function newSeries(perSecond: number[], [generator, system]: [number, number]): Series {
  const rounds = { perSecond, p50Ms: [], p99Ms: [], cpuUs: [], rssMb: [] }
  return {
    system: 'one',
    rounds,
    readP99Ms: [],
    generatorCpuUs: [],
    generatorShare: [generator],
    systemShare: [system],
    otherShare: [],
  }
}

describe('the load generator of the benchmark', () => {
  for (const [title, answer] of Object.entries({ plain, chunked })) {
    it(`finds the end of a ${title} answer, however it is split`, () => {
      for (let cut = 1; cut < answer.length; cut++) {
        const read = buildAnswerReader(200, fail)
        const connection = {}
        const pieces = [answer.slice(0, cut), answer.slice(cut)].map((text) => Buffer.from(text))
        const ends = pieces.map((piece) => read(connection, piece, piece.length))
        assert.deepEqual(ends, [false, true])
        assert.equal(read(connection, Buffer.from(answer), answer.length), true)
      }
    })
  }

  it('ends the run at a wrong answer, even at one of the usual length', () => {
    const read = buildAnswerReader(200, fail)
    const wrong = plain.replace('200 OK', '503 No')
    assert.equal(read({}, Buffer.from(plain), plain.length), true)
    assert.throws(() => read({}, Buffer.from(wrong), wrong.length), /not 200: HTTP\/1.1 503/)
  })
})

describe('the figures of the benchmark', () => {
  it('are medians, and their ratio is taken round by round', () => {
    const one = newSeries([10, 20, 60], [0.5, 1])
    const other = newSeries([20, 40, 40], [0.5, 1])
    assert.equal(toFigure(one.rounds.perSecond).median, 20)
    assert.equal(ratio(one, other, 'perSecond'), 0.5)
  })

  it('are not compared where the generator was the bottleneck', () => {
    assert.equal(isGeneratorBound(newSeries([], [0.97, 0.7])), true)
    assert.equal(isGeneratorBound(newSeries([], [0.97, 1])), false)
    const target = { title: '', value: 2, bound: { least: 1 } }
    assert.equal(judge(target), 'reached')
    assert.equal(judge({ ...target, refused: 'generator-bound' }), 'refused')
    assert.equal(judge({ ...target, bound: { most: 1 } }), 'not reached')
  })
})
