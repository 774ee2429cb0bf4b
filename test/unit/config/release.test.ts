import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { commitIn, heddleVersion } from '../../../src/core/config/release.ts'
import { temporaryFolder } from '../../support/folder.ts'

const A = 'a'.repeat(40)
const B = `b${'0123456789'.repeat(4)}`.slice(0, 40)

/** A folder with these files below `.git`. */
function repository(t: TestContext, files: Record<string, string>): string {
  const folder = temporaryFolder(t)
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, '.git', path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, text)
  }
  return folder
}

test('the commit is that of HEAD: detached, of a branch, or of a packed branch, also in a folder below', (t) => {
  const detached = repository(t, { HEAD: `${A}\n` })
  assert.equal(commitIn(detached), A.slice(0, 12))
  const branch = repository(t, { HEAD: 'ref: refs/heads/feature/x\n', 'refs/heads/feature/x': `${B}\n` })
  assert.equal(commitIn(branch), B.slice(0, 12))
  mkdirSync(join(branch, 'services/shop'), { recursive: true })
  assert.equal(commitIn(join(branch, 'services/shop')), B.slice(0, 12))
  const packed = `# pack-refs with: peeled fully-peeled sorted\n${A} refs/heads/main-2\n${B} refs/heads/main\n`
  assert.equal(commitIn(repository(t, { HEAD: 'ref: refs/heads/main', 'packed-refs': packed })), B.slice(0, 12))
})

test('a branch that was packed and has moved since is at its own file', (t) => {
  const packed = `${A} refs/heads/main\n`
  const folder = repository(t, { HEAD: 'ref: refs/heads/main', 'refs/heads/main': B, 'packed-refs': packed })
  assert.equal(commitIn(folder), B.slice(0, 12))
})

test('a worktree has its own HEAD, and the branches of its repository', (t) => {
  const main = repository(t, {
    HEAD: `${A}\n`,
    'refs/heads/side': `${B}\n`,
    'worktrees/side/HEAD': 'ref: refs/heads/side\n',
    'worktrees/side/commondir': '../..\n',
  })
  const side = temporaryFolder(t)
  writeFileSync(join(side, '.git'), `gitdir: ${join(main, '.git/worktrees/side')}\n`)
  assert.equal(commitIn(side), B.slice(0, 12))
})

test('what is no commit gives none', (t) => {
  const repositories: Record<string, string>[] = [
    { HEAD: 'ref: refs/heads/none\n' },
    { HEAD: 'ref: refs/../../HEAD\n' },
    { HEAD: 'not a commit' },
    { HEAD: 'ref: refs/heads/main', 'refs/heads/main': 'A'.repeat(40) },
    { 'HEAD/x': '' },
  ]
  for (const files of repositories) assert.equal(commitIn(repository(t, files)), undefined, JSON.stringify(files))
})

test('the version is that of the package', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  assert.equal(heddleVersion(), version)
})
