import { isGeneratorBound, median, ratio } from '../figures.ts'
import type { Operation } from '../requests.ts'
import type { Target } from '../section.ts'
import type { Measure, Series } from '../slices.ts'
import { kinds, peers, type SystemName } from '../systems.ts'
import type { Load } from './throughput.ts'

type Bound = Target['bound']
type Find = (
  load: { workload: Operation; connections: number },
  name: SystemName,
) => Series | undefined

const words: Record<Measure, string> = {
  perSecond: 'throughput',
  p50Ms: 'p50',
  p99Ms: 'p99',
  cpuUs: 'CPU per request',
  rssMb: 'memory',
}
const operations = ['create', 'get', 'list'] as const

/** What is promised of the speed of ours, beside the others of the same run. */
export function toTargets(loads: readonly Load[]): Target[] {
  const find: Find = ({ workload, connections }, name) =>
    loads
      .find((load) => load.workload === workload && load.connections === connections)
      ?.series.find(({ system }) => system === name)

  function compare(
    workload: Operation,
    [ours, other]: [SystemName, SystemName],
    measure: Measure,
    bound: Bound,
    connections = 64,
  ): Target[] {
    const one = find({ workload, connections }, ours)
    const two = find({ workload, connections }, other)
    if (one === undefined || two === undefined) return []
    const alone = connections === 1 ? ', one connection' : ''
    const title = `${workload}${alone}: ${words[measure]}, ${kinds[ours].title} / ${kinds[other].title}`
    return [{ title, value: ratio(one, two, measure), bound, ...refuse([one, two], measure) }]
  }

  return [
    ...compare('create', ['ours-sqlite', 'echo'], 'cpuUs', { most: 1.5 }),
    ...compare('create', ['ours-sqlite', 'echo'], 'perSecond', { least: 0.65 }),
    ...compare('create', ['ours-sqlite', 'usual-sqlite'], 'perSecond', { least: 3.5 }),
    ...compare('create', ['ours-sqlite', 'usual-sqlite'], 'cpuUs', { most: 0.4 }),
    ...compare('create', ['ours-sqlite', 'usual-sqlite'], 'p99Ms', { most: 0.5 }),
    ...compare('create', ['ours-postgres', 'usual-postgres'], 'perSecond', { least: 2 }),
    ...compare('create', ['ours-postgres', 'usual-postgres'], 'cpuUs', { most: 0.4 }),
    ...compare('create', ['ours-sqlite', 'usual-sqlite'], 'p50Ms', { most: 1.25 }, 1),
    ...compare('create', ['ours-postgres', 'usual-postgres'], 'p50Ms', { most: 1.25 }, 1),
    ...(['get', 'list'] as const).flatMap((workload) => [
      ...compare(workload, ['ours-sqlite', 'usual-sqlite'], 'cpuUs', { most: 1 }),
      ...compare(workload, ['ours-postgres', 'usual-postgres'], 'cpuUs', { most: 1 }),
    ]),
    ...operations.flatMap((workload) =>
      peers.flatMap((peer) => compare(workload, ['ours-sqlite', peer], 'perSecond', { least: 1 })),
    ),
    ...compareGenerator(find),
  ]
}

// A load that costs more than the ceiling would measure itself.
function compareGenerator(find: Find): Target[] {
  const ceiling = find({ workload: 'create', connections: 64 }, 'echo')
  if (ceiling === undefined) return []
  const value = median(ceiling.generatorCpuUs) / median(ceiling.rounds.cpuUs)
  return [
    { title: 'create: CPU per request, the load itself / the ceiling', value, bound: { most: 1 } },
  ]
}

function refuse(series: readonly Series[], measure: Measure): { refused: string } | object {
  const isRefused = measure === 'perSecond' && series.some(isGeneratorBound)
  return isRefused ? { refused: 'generator-bound' } : {}
}
