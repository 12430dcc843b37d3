import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clean, judge, type Wrong } from './lab/checker.ts'
import type { FeedEvent } from './lab/feed.ts'
import type { FinalState, Plants } from './lab/final-state.ts'
import { type Attempt, type Content, type History, newHistory, noteAttempt } from './lab/history.ts'

type Made = Partial<Attempt> & Pick<Attempt, 'kind'>

/** A history of one id with consecutive attempts, of which the first is sent at 10. */
function make(id: bigint, ...attempts: Made[]): History {
  const history = newHistory()
  for (const [index, { kind, ...rest }] of attempts.entries()) {
    const content = kind === 'delete' ? undefined : (rest.content ?? 'a')
    const times = { sentAt: 10 + index * 10, answeredAt: 15 + index * 10 }
    const outcome = 'ok'
    const answers = { answered: content, etag: '"1"' }
    const attempt = noteAttempt(history, { id, kind, content })
    Object.assign(attempt, { ...times, outcome, ...answers }, rest)
  }
  return history
}

/** A state on which all three ways to read agree. */
function holding(...plants: [bigint, string][]): FinalState {
  return { got: plants, walked: plants, exported: plants, events: undefined }
}

function withRead(history: History, sentAt: number, answeredAt: number, content: Content): History {
  const [id = 0n] = history.attemptsById.keys()
  history.reads.push({ id, sentAt, answeredAt, content })
  return history
}

const id = 2n ** 53n + 1n
const created: Made = { kind: 'create', status: 200 }
const keyed: Made = { kind: 'keyed create', status: 200 }
const again: Made = { kind: 'keyed again', status: 200 }
const replaced: Made = { kind: 'replace', content: 'b', status: 200 }
const removed: Made = { kind: 'delete', status: 204 }
const unknown: Partial<Attempt> = { outcome: 'unknown', answered: undefined, etag: undefined }
const refused: Partial<Attempt> = { ...unknown, outcome: 'refused' }
const one: [bigint, string] = [id, 'a']
const two: Plants = [one, one]

/** The same state, with these changes in the journal. */
function telling(state: FinalState, ...events: [type: string, name: string, id?: bigint][]) {
  return {
    ...state,
    events: events.map(
      ([type, name, of = id], index) =>
        ({ position: `${index}`, type: `plant.${type}`, plant: { id: of, name } }) as FeedEvent,
    ),
  }
}

const wrong: [Wrong, what: string, history: History, state: FinalState][] = [
  ['lost', 'a missing create that was acknowledged', make(id, created), holding()],
  ['lost', 'a missing replace that was acknowledged', make(id, created, replaced), holding(one)],
  [
    'lost',
    'a missing plant whose delete was refused',
    make(id, created, { ...removed, ...refused }),
    holding(),
  ],
  [
    'lost',
    'a missing keyed create that was acknowledged in the end',
    make(id, { ...keyed, ...unknown }, keyed),
    holding(),
  ],
  ['invented', 'a plant that was never sent', newHistory(), holding(one)],
  [
    'invented',
    'a stored create that was refused',
    make(id, { ...created, ...refused }),
    holding(one),
  ],
  [
    'invented',
    'a stored plant whose delete was acknowledged',
    make(id, created, removed),
    holding(one),
  ],
  [
    'invented',
    'a new id that is reported as taken',
    make(id, { ...created, ...refused, status: 409 }),
    holding(),
  ],
  ['duplicate', 'a plant twice in the list', make(id, created), { ...holding(one), walked: two }],
  [
    'duplicate',
    'a plant twice in the export',
    make(id, created),
    { ...holding(one), exported: two },
  ],
  [
    'duplicate',
    'a forgotten key',
    make(id, { ...keyed, ...unknown }, { ...keyed, ...refused, status: 409 }),
    holding(one),
  ],
  ['duplicate', 'a key with two answers', make(id, keyed, { ...again, etag: '"2"' }), holding(one)],
  ['duplicate', 'a key that stores its plant again', make(id, keyed, removed, again), holding(one)],
  ['wrong', 'a content that was never sent', make(id, created), holding([id, 'z'])],
  [
    'wrong',
    'an answer with another content',
    make(id, { ...created, answered: 'z' }),
    holding(one),
  ],
  ['wrong', 'a read of another content', withRead(make(id, created), 20, 21, 'z'), holding(one)],
  [
    'stale',
    'a read that misses a plant',
    withRead(make(id, created), 20, 21, undefined),
    holding(one),
  ],
  [
    'stale',
    'a read of a replaced content',
    withRead(make(id, created, replaced), 30, 31, 'a'),
    holding([id, 'b']),
  ],
  [
    'stale',
    'a read of a deleted plant',
    withRead(make(id, created, removed), 30, 31, 'a'),
    holding(),
  ],
  [
    'stale',
    'a delete that finds nothing',
    make(id, created, { ...removed, ...refused, status: 404 }),
    holding(one),
  ],
  [
    'stale',
    'a replace that finds nothing',
    make(id, created, { ...replaced, status: 201 }),
    holding([id, 'b']),
  ],
  [
    'missing',
    'a replace that the journal does not have',
    make(id, created, { ...replaced, content: 'b' }, { ...replaced, content: 'c' }),
    telling(holding([id, 'c']), ['created', 'a'], ['replaced', 'c']),
  ],
  [
    'extra',
    'a change that was refused and is in the journal',
    make(id, created, { ...replaced, ...refused }, { ...replaced, content: 'c' }),
    telling(holding([id, 'c']), ['created', 'a'], ['replaced', 'b'], ['replaced', 'c']),
  ],
  [
    'extra',
    'a change that is in the journal twice',
    make(id, created, replaced),
    telling(holding([id, 'b']), ['created', 'a'], ['replaced', 'b'], ['replaced', 'b']),
  ],
  [
    'outOfOrder',
    'a journal that leads to another content',
    make(id, created, replaced, { ...replaced, content: 'c' }),
    telling(holding([id, 'c']), ['created', 'a'], ['replaced', 'c'], ['replaced', 'b']),
  ],
  ['disagreeing', 'a list without a plant', make(id, created), { ...holding(one), walked: [] }],
  [
    'disagreeing',
    'an export without a plant',
    make(id, created),
    { ...holding(one), exported: [] },
  ],
  [
    'disagreeing',
    'a list with another content',
    make(id, created),
    { ...holding(one), walked: [[id, 'z']] },
  ],
]

describe('the verdict of the checker', () => {
  for (const [kind, what, history, state] of wrong) {
    it(`is "${kind}" for ${what}, and nothing else`, () => {
      assert.deepEqual(judge(history, state), { ...clean, [kind]: 1 })
    })
  }
})
