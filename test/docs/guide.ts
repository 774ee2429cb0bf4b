import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import type { TestContext } from 'node:test'
import { ROOT } from './sources.ts'

export interface Snippet {
  /** Where the guide says that it belongs, from the root of the repository. */
  path: string
  text: string
}

/** The files that the plugin author's guide holds: each block of TypeScript or SQL, named by its first line. */
export function guideSnippets(): Snippet[] {
  const page = readFileSync(join(ROOT, 'domains/README.md'), 'utf8')
  return [...page.matchAll(/^```(?:ts|sql)\n(.*?)^```$/gms)].map(([, text]) => {
    const path = /^(?:\/\/|--) (\S+\.(?:ts|sql))\n/.exec(text!)?.[1]
    if (path === undefined) throw new Error(`A block of domains/README.md does not name its file:\n${text}`)
    return { path, text: text! }
  })
}

/**
 * Writes the guide's files into a folder of their own that looks like a repository, inside of this one so that `#heddle` resolves.
 * Beside them stand this repository's tools and test support.
 */
export function writeGuide(t: TestContext): string {
  const root = mkdtempSync(join(ROOT, 'test/docs/.snippets/run-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const standIn = (path: string, exported: string): void =>
    write(
      path,
      `export ${exported} from '${relative(join(root, dirname(path)), join(ROOT, path)).replaceAll(sep, '/')}'\n`,
    )

  for (const { path, text } of guideSnippets()) write(path, text)
  for (const name of readdirSync(join(ROOT, 'src/tools'))) standIn(`src/tools/${name}/index.ts`, '{ default }')
  standIn('src/contracts/tool.ts', 'type *')
  standIn('test/support/heddle.ts', '*')
  write('tsconfig.json', JSON.stringify({ extends: '../../../../tsconfig.json', include: ['src', 'domains', 'test'] }))
  return root
}
