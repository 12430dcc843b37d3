import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gzipSync } from 'node:zlib'
import { applicationId } from '../../src/store/sqlite/file.ts'
import { ends, newStore } from './ends.ts'
import { describeRefused, type Row, readers } from './refused.ts'

/** A folder with a store, a backup of it, files that are spoiled, and files of others. */
async function prepare(): Promise<string> {
  const folder = await newStore()
  const to = (name: string) => join(folder, name)
  await ends('backup good.db --quiet', 0, '', folder)
  const good = readFileSync(to('good.db'))
  const newer = Buffer.from(good)
  newer.writeUInt32BE(999, 60)
  const files = {
    'hello.db': 'hello',
    'empty.db': '',
    'cut.db': good.subarray(0, 8_192),
    'filled.db': Buffer.from(good).fill(0xaa, 4_096, 12_288),
    'damaged.db': Buffer.from(good).fill(0xab, good.length - 4_096),
    'newer.db': newer,
    'cut.gz': gzipSync(good).subarray(0, -20),
    'hello.gz': gzipSync('hello'),
    'crashed.db-wal': 'the rest',
    'logged.db-wal': 'old',
    'plants.ndjson': '{"line":1,"id":1,"name":"a"}\n{"line":2}\n',
    'notes.txt': 'mine',
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(to(name), content)
  copyFileSync(to('good.db'), to('crashed.db'))
  symlinkSync('crashed.db', to('link.db'))
  symlinkSync('plants.ndjson', to('link.ndjson'))
  symlinkSync('loop', to('loop'))
  symlinkSync('data/plant-store.db', to('link.csv'))
  linkSync(to('plants.ndjson'), to('hard-link'))
  mkdirSync(to('folder'))
  writeFileSync(to('folder/hello-2020-01-01T00-00-00-000Z.db.gz'), 'older than any other')
  using db = new DatabaseSync(to('unfinished.db'))
  db.exec(`PRAGMA application_id = ${applicationId}`)
  return folder
}

const toNew = (file: string) => `restore ${file} --database sqlite:new/plants.db`
const ofStore = (file: string) => `${file} is a file of the store. Name another file.`
const isNoBackup = 'is not a backup of Plant Store.'
/** Opens, but its beginning cannot be read. */
const unreadable = '/proc/self/mem'

const restores: Row[] = [
  [toNew('hello.db'), 65, `hello.db ${isNoBackup}`],
  [toNew('hello.gz'), 65, `hello.gz ${isNoBackup}`],
  [toNew('-'), 65, `Standard input ${isNoBackup}`, 'hello'],
  [toNew('empty.db'), 65, 'empty.db is empty.'],
  [toNew('cut.db'), 65, 'cut.db is damaged. Restore another backup.'],
  [toNew('filled.db'), 65, 'filled.db is damaged. Restore another backup.'],
  [toNew('newer.db'), 65, 'newer.db was written by a newer release. Restore it with that release.'],
  [toNew('cut.gz'), 65, 'cut.gz: the gzip data is damaged or incomplete.'],
  [toNew('crashed.db'), 65, /^crashed\.db-wal belongs to crashed\.db: /],
  [toNew('link.db'), 65, /crashed\.db-wal belongs to link\.db: /],
  [toNew('none.db'), 66, 'Cannot read none.db: there is no such file or folder.'],
  [toNew('folder'), 66, 'Cannot read folder: it is a folder.'],
  ['restore good.db', 73, /^data\/plant-store\.db exists and was not changed\. /],
  ['restore good.db --database sqlite:logged.db', 73, /^logged\.db-wal exists and was not /],
  [
    'restore good.db --database sqlite:good.db/new/plants.db',
    73,
    /^Cannot write good\.db\/new\/.*: a part of the path is not a folder\.$/,
  ],
]

const keep = 'Cannot keep backups in'
const backups: Row[] = [
  ['backup notes.txt', 73, /^Cannot write notes\.txt: it exists already and was not changed\.$/],
  // SQLite would take it for its own.
  ['backup data/plant-store.db-journal', 73, ofStore('data/plant-store.db-journal')],
  ...['empty.db', 'unfinished.db'].map(
    (name): Row => [
      `backup b.db --database sqlite:${name}`,
      78,
      `${name} is empty: no store was made yet.`,
    ],
  ),
  [
    'backup b.db --database sqlite:newer.db',
    78,
    /^newer\.db was written by a newer release \(schema 999, this one knows \d+\)\./,
  ],
  [
    'backup b.db --database sqlite:damaged.db',
    78,
    'damaged.db is damaged: nothing was kept. Restore its last backup.',
  ],
  [
    'backup folder --keep 1 --database sqlite:hello.db',
    78,
    'hello.db is not a database of Plant Store and was not touched. Name another path.',
  ],
  ...['0', '-1', '1.5', '10001', 'all', ''].map(
    (count): Row => [
      ['backup', 'folder', `--keep=${count}`],
      78,
      `--keep must be a number of backups from 1 to 10000, not "${count}".`,
    ],
  ),
  ...['backup b.db', 'token create --name a'].map(
    (line): Row => [
      `${line} --database sqlite:loop`,
      78,
      'Cannot open the database loop: the path has too many links.',
    ],
  ),
  ['backup nowhere --keep 3', 78, `${keep} nowhere: there is no such file or folder.`],
  ['backup good.db --keep 3', 78, `${keep} good.db: a part of the path is not a folder.`],
  ['backup - --keep 3', 78, `${keep} -: there is no such file or folder.`],
]

const same = ['plants.ndjson', 'folder/../plants.ndjson', 'link.ndjson', 'hard-link']
const imports: Row[] = [
  ...[...same, ...(existsSync('/proc') ? ['/proc/self/cwd/plants.ndjson'] : [])].map(
    (name): Row => [
      `import plants.ndjson --rejects ${name}`,
      73,
      `--rejects ${name} is the file to import. Name another file.`,
    ],
  ),
  [
    'import plants.ndjson --rejects notes.txt',
    73,
    /^--rejects notes\.txt holds something other than rejected lines and was not changed\. /,
  ],
  // Even one that does not exist yet.
  ...['', '-wal', '-shm', '-journal'].map(
    (suffix): Row => [
      `import plants.ndjson --rejects ./new.db${suffix} --database sqlite:new.db`,
      73,
      ofStore(`--rejects ./new.db${suffix}`),
    ],
  ),
]

const exports: Row[] = [
  ...['data/plant-store.db', 'data/plant-store.db-wal', 'link.csv'].map(
    (name): Row => [`export ${name} --format csv`, 73, ofStore(name)],
  ),
  // SQLite keeps the log beside the file that the link leads to.
  ...['data/plant-store.db-wal', 'data/plant-store.db-shm'].map(
    (name): Row => [`export ${name} --format csv --database sqlite:link.csv`, 73, ofStore(name)],
  ),
  ...(existsSync('/dev/full')
    ? [['export /dev/full --format csv', 73, 'Cannot write /dev/full: the disk is full.'] as Row]
    : []),
]

const empty = readers.map(
  (line): Row => [
    `${line} --database sqlite:empty.db`,
    78,
    /^There is no store at \S+\/empty\.db\. Run the command/,
  ],
)

const unread = [toNew(unreadable), `import ${unreadable} --format ndjson`].map(
  (line): Row => [line, 66, `Cannot read ${unreadable}: the disk reports an error.`],
)

describeRefused(
  'a file that cannot be used ends a command in one line',
  [
    ...[...restores, ...backups, ...imports, ...exports, ...empty],
    ...(existsSync(unreadable) ? unread : []),
  ],
  prepare,
)
