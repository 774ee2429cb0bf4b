import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
/** Everything that a careful project may ask of its files. */
const STRICT =
  'strict noUncheckedIndexedAccess exactOptionalPropertyTypes verbatimModuleSyntax isolatedModules erasableSyntaxOnly noImplicitOverride noImplicitReturns noUnusedLocals noUnusedParameters noPropertyAccessFromIndexSignature noFallthroughCasesInSwitch noEmit'
const LIBRARIES = {
  browser: ['--lib', 'es2022,dom,dom.iterable,dom.asynciterable', '--types', ''],
  node: ['--lib', 'es2023', '--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')],
}

/** The program of the page of the client. */
export const PAGE = /```ts\n(.*?)```/s.exec(readFileSync(join(ROOT, 'src/devtools/client/README.md'), 'utf8'))![1]!

/** The strictest compiler takes these files, as they are loaded by Node or by a browser. */
export function assertCompiles(folder: string, files: readonly string[], library: keyof typeof LIBRARIES): void {
  const strict = STRICT.split(' ').map((name) => `--${name}`)
  const args = [...strict, '--target', 'es2022', '--module', 'nodenext', '--allowImportingTsExtensions']
  try {
    execFileSync(process.execPath, [TSC, ...args, ...LIBRARIES[library], ...files], { cwd: folder, encoding: 'utf8' })
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout)
  }
}
