import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempDisposableSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { buildAnswerReader } from '../../bench/answers.ts'
import { isGeneratorBound, median, ratio, toSpread } from '../../bench/figures.ts'
import { openLab } from '../../bench/lab.ts'
import { writeDocs } from '../../bench/report.ts'
import { toNextPath } from '../../bench/requests.ts'
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
  for (const [title, answer] of Object.entries({ plain, chunked })) {
    it(`finds the end of a ${title} answer, wherever the answer is split`, () => {
      for (let cut = 1; cut < answer.length; cut++) {
        const read = buildAnswerReader(200, fail)
        const connection = {}
        const parts = [answer.slice(0, cut), answer.slice(cut)].map((text) => Buffer.from(text))
        const ends = parts.map((part) => read(connection, part, part.length))
        assert.deepEqual(ends, [0, 1])
        assert.equal(read(connection, Buffer.from(answer), answer.length), 1)
      }
    })
  }

  it('counts the answers to requests sent at once, however they are split', () => {
    const bytes = Buffer.from(plain.repeat(4))
    for (let cut = 1; cut < bytes.length; cut++) {
      const read = buildAnswerReader(200, fail)
      const connection = {}
      const parts = [bytes.subarray(0, cut), bytes.subarray(cut), bytes]
      const [first = 0, second = 0, whole] = parts.map((part) =>
        read(connection, part, part.length),
      )
      assert.deepEqual([first, first + second, whole], [Math.floor(cut / plain.length), 4, 4])
    }
  })

  it('ends the run at an answer with another status, even one of the usual length', () => {
    const read = buildAnswerReader(200, fail)
    const wrong = plain.replace('200 OK', '503 No')
    assert.equal(read({}, Buffer.from(plain), plain.length), 1)
    assert.throws(() => read({}, Buffer.from(wrong), wrong.length), /not 200: HTTP\/1.1 503/)
  })

  /** A lab, and the port of a server that answers like this. Both are closed with the test. */
  async function openLabFor(t: TestContext, onConnection = (_: Socket) => {}) {
    const server = createServer(onConnection).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const lab = openLab('short', () => {})
    t.after(async () => {
      await lab.close()
      server.close()
    })
    return { lab, port: (server.address() as AddressInfo).port }
  }

  it('fails the run that waits for it when it ends', async (t) => {
    const { lab, port } = await openLabFor(t)
    // It cannot send a request of no kind.
    const run = lab.drive({ port, connections: 1, cycle: [], requests: 1 })
    await assert.rejects(run, /The load generator has ended/)
  })

  it('begins with the first id for another system on the same port', async (t) => {
    const ids: string[] = []
    const { lab, port } = await openLabFor(t, (socket) => {
      socket.on('error', () => {})
      socket.on('data', (bytes) => {
        ids.push(/plants\/(\d+)/.exec(String(bytes))?.[1] ?? '')
        socket.write(plain)
      })
    })
    const fromSeven = { kind: 'next', first: 7 } as const
    const pattern = { method: 'GET', path: '/plants/{id}', status: 200, ids: fromSeven } as const
    const load = { port, connections: 1, cycle: [pattern], requests: 2 }
    await lab.drive(load)
    await lab.drive(load)
    await lab.forget(port)
    await lab.drive(load)
    assert.deepEqual(ids, ['7', '8', '9', '10', '7', '8'])
  })

  it('follows relative and absolute links to the next page', () => {
    const path = '/plants?after=7'
    assert.equal(toNextPath(`<${path}>; rel="next"`), path)
    assert.equal(toNextPath(`<http://127.0.0.1:3000${path}>; rel="next"`), path)
    assert.equal(toNextPath(undefined), undefined)
  })
})

describe('the figures of the benchmark', () => {
  it('are medians, with ratios taken round by round', () => {
    const one = newSeries([10, 20, 60], [0.5, 1])
    const other = newSeries([20, 40, 40], [0.5, 1])
    assert.equal(median(one.rounds.perSecond), 20)
    assert.equal(toSpread(one.rounds.perSecond), (40 - 15) / 20)
    assert.equal(ratio(one, other, 'perSecond'), 0.5)
  })

  it('refuse to compare a rate that the generator limited', () => {
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
})

describe('the report of the benchmark', () => {
  it('writes its tables and plot, and the first table of the page beside them', () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'plant-store-bench-'))
    const target = { title: 'speed', value: 1.36, bound: { max: 1.5 } }
    const figures = [
      { title: 'creates/s', values: { ours: 20_000, theirs: 5_000 } },
      { title: 'start, ms', values: { ours: 99.5 } },
    ]
    const section = { title: 'Speed', text: 'fast', values: [], targets: [target], figures }
    const page = join(folder.path, 'performance.md')
    const [before, after] = [
      '# Performance\n\n<!-- begin',
      'end of measured figures -->\n\nprose\n',
    ]
    writeFileSync(page, `${before} of measured figures -->\nold\n<!-- ${after}`)
    for (const _ of ['once', 'again']) {
      writeDocs('short', new Map([['speed', section]]), pathToFileURL(`${folder.path}/`))
    }
    const text = readFileSync(page, 'utf8')
    assert.ok(text.startsWith(before) && text.endsWith(after) && !text.includes('old'))
    assert.equal(text.split('| ours   |    20,000 |      99.5 |').length, 2)
    assert.match(text, /\| theirs \| +5,000 \| +– \|/)
    const written = join(folder.path, 'performance')
    assert.deepEqual(readdirSync(written).sort(), ['figures.svg', 'tables.md'])
    assert.match(readFileSync(join(written, 'figures.svg'), 'utf8'), />theirs<.*\n.*\n.*>5,000</)
    const tables = readFileSync(join(written, 'tables.md'), 'utf8')
    assert.match(tables, /^# Benchmark tables\n/)
    assert.match(tables, /\| speed \| +1\.36 \| +≤ 1\.5 \| reached \|/)
    assert.match(tables, /## Speed\n\nfast\n$/)
  })
})
