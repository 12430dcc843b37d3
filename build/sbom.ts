/**
 * Completes the list of packages that npm writes, read from standard input: a release also brings
 * Node.js, and what is compiled into it.
 */
import { json } from 'node:stream/consumers'

interface Bom {
  readonly metadata: { readonly component: { readonly 'bom-ref': string } }
  readonly components: unknown[]
  readonly dependencies: { readonly ref: string; readonly dependsOn: string[] }[]
}

const { node, v8, openssl, sqlite } = process.versions
const platform = toComponent('platform', 'node', node, 'MIT', 'nodejs:node.js')
const inside = [
  toComponent('library', 'v8', v8, 'BSD-3-Clause'),
  toComponent('library', 'openssl', openssl, 'Apache-2.0', 'openssl:openssl'),
  toComponent('library', 'sqlite', sqlite ?? '', 'blessing', 'sqlite:sqlite'),
]

const bom = (await json(process.stdin)) as Bom
bom.components.push(platform, ...inside)
const root = bom.dependencies.find(({ ref }) => ref === bom.metadata.component['bom-ref'])
root?.dependsOn.push(platform['bom-ref'])
bom.dependencies.push(
  { ref: platform['bom-ref'], dependsOn: inside.map((part) => part['bom-ref']) },
  ...inside.map((part) => ({ ref: part['bom-ref'], dependsOn: [] })),
)
console.log(JSON.stringify(bom, null, 2))

/** Scanners know what is not from a registry by its CPE: the maker and the product. */
function toComponent(type: string, name: string, version: string, license: string, cpe?: string) {
  return {
    'bom-ref': `${name}@${version}`,
    type,
    name,
    version,
    purl: `pkg:generic/${name}@${version}`,
    ...(cpe && { cpe: `cpe:2.3:a:${cpe}:${version}:*:*:*:*:*:*:*` }),
    licenses: [{ license: { id: license } }],
  }
}
