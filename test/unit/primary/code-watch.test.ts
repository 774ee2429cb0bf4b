import assert from 'node:assert/strict'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import { watchCode } from '../../../src/devtools/development.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

/** A single file that is watched too, beside the folder. */
const VARIABLES = `heddle-watch-${process.pid}.env`

/** A watched folder with one plugin. */
async function watched(t: TestContext) {
  const folder = temporaryFolder(t)
  const file = join(folder, 'shop/plugins/sell.ts')
  await mkdir(join(folder, 'shop/plugins'), { recursive: true })
  await writeFile(file, '0')
  const changes: string[] = []
  const faults: string[] = []
  const batches: string[][] = []
  const end = watchCode({
    folders: [folder],
    files: [join(folder, '..', VARIABLES)],
    onChange: (paths) => {
      batches.push(paths)
      changes.push(...paths.map((path) => relative(folder, path)))
    },
    onFault: (fault) => void faults.push(fault),
  })
  t.after(end)
  /** Does it, and waits until it is told. */
  const told = async (path: string, change: () => Promise<unknown>): Promise<void> => {
    changes.length = 0
    await change()
    await until(() => changes.includes(path), `${path} is told`, 20_000)
  }
  return { folder, file, changes, batches, faults, end, told }
}

test('a file is told each time that it is written, also after an editor has put another in its place', async (t) => {
  const { file, told, faults } = await watched(t)
  for (let n = 0; n < 3; n++) {
    await told('shop/plugins/sell.ts', () => writeFile(file, `written ${n}`))
    await writeFile(`${file}.tmp`, `replaced ${n}`)
    await told('shop/plugins/sell.ts', () => rename(`${file}.tmp`, file))
  }
  assert.deepEqual(faults, [])
})

test('files of new folders are told, those that came with the folder too', async (t) => {
  const { folder, told, faults } = await watched(t)
  const file = join(folder, 'stock/plugins/count.ts')
  await told('stock/plugins/count.ts', async () => {
    await mkdir(join(folder, 'stock/plugins'), { recursive: true })
    await writeFile(file, '1')
  })
  await told('stock/plugins/count.ts', () => writeFile(file, '2'))
  await rm(join(folder, 'stock'), { recursive: true })
  await mkdir(join(folder, 'stock/plugins'), { recursive: true })
  await told('stock/plugins/count.ts', () => writeFile(file, '3'))
  await told('stock/plugins/count.ts', () => rm(file))
  assert.deepEqual(faults, [])
})

test('what is no code is not told, nor what lies in node_modules', async (t) => {
  const { folder, file, told, changes } = await watched(t)
  await told('shop/plugins/sell.ts', async () => {
    await writeFile(join(folder, 'shop/notes.md'), 'text')
    await mkdir(join(folder, 'node_modules/x'), { recursive: true })
    await writeFile(join(folder, 'node_modules/x/index.js'), 'text')
    await writeFile(file, '1')
  })
  assert.deepEqual(changes, ['shop/plugins/sell.ts'])
})

test('what an editor or a test leaves beside the code is not told', async (t) => {
  const { folder, file, told, changes } = await watched(t)
  await told('shop/plugins/sell.ts', async () => {
    for (const name of ['.#sell.ts', '.sell.ts.swp', '4913', 'sell.ts~', 'sell.test.ts', 'sell.d.ts']) {
      await writeFile(join(folder, 'shop/plugins', name), 'text')
    }
    await writeFile(file, '1')
  })
  assert.deepEqual(changes, ['shop/plugins/sell.ts'])
})

test('many files at once are told together', async (t) => {
  const { folder, batches, file } = await watched(t)
  const names = Array.from({ length: 200 }, (_, n) => `shop/plugins/part-${n}.ts`)
  await Promise.all(names.map((name) => writeFile(join(folder, name), '1')))
  await rm(file)
  await until(() => new Set(batches.flat()).size === names.length + 1, 'all of them', 20_000)
  // One or two, unless this thread waits for a core while the files are written.
  assert.ok(batches.length <= 20, `${batches.length} times`)
})

test('a single file is told wherever it lies, and what lies beside it is not', async (t) => {
  const { folder, told, changes } = await watched(t)
  const single = join(folder, '..', VARIABLES)
  t.after(() => rm(single, { force: true }))
  await told(`../${VARIABLES}`, async () => {
    await writeFile(join(folder, '..', `${VARIABLES}.json`), '{}')
    await writeFile(single, 'A=1')
  })
  await rm(join(folder, '..', `${VARIABLES}.json`))
  assert.deepEqual([...new Set(changes)], [`../${VARIABLES}`])
})

test('nothing is told after the end', async (t) => {
  const { file, changes, end } = await watched(t)
  await writeFile(file, '1')
  end()
  const other = await watched(t)
  await other.told('shop/plugins/sell.ts', () => writeFile(other.file, '1'))
  assert.deepEqual(changes, [])
})
