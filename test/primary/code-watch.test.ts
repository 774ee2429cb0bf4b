import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { watchCode } from '../../src/primary/code-watch.ts'
import { until } from '../support/heddle.ts'

/** A watched folder with one plugin. */
async function watched(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-watch-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'shop/plugins/sell.ts')
  await mkdir(join(folder, 'shop/plugins'), { recursive: true })
  await writeFile(file, '0')
  const changes: string[] = []
  const faults: string[] = []
  const end = watchCode(
    [folder],
    (path) => void changes.push(path),
    (fault) => void faults.push(fault),
  )
  t.after(end)
  /** Does it, and waits until it is told. */
  const told = async (path: string, change: () => Promise<unknown>): Promise<void> => {
    changes.length = 0
    await change()
    await until(() => changes.includes(path), `${path} is told`, 20_000)
  }
  return { folder, file, changes, faults, end, told }
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

test('nothing is told after the end', async (t) => {
  const { file, changes, end } = await watched(t)
  await writeFile(file, '1')
  end()
  const other = await watched(t)
  await other.told('shop/plugins/sell.ts', () => writeFile(other.file, '1'))
  assert.deepEqual(changes, [])
})
