import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import type { TestContext } from 'node:test'
import { ROOT } from './sources.ts'

export interface Snippet {
  /** Where the guide says that it belongs, from the root of the repository. */
  path: string
  text: string
}

/** The pages that build the shop together: the guide for plugin authors, those of the tools, and that of the API documents. */
const PAGES = [
  'domains/README.md',
  ...readdirSync(join(ROOT, 'src/contracts'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `src/contracts/${name}`),
  'src/devtools/apidocs/README.md',
]

/** The files that these pages hold: each block of TypeScript or SQL, named by its first line. */
export function guideSnippets(): Snippet[] {
  const snippets = PAGES.flatMap((page) => {
    const blocks = readFileSync(join(ROOT, page), 'utf8').matchAll(/^```(?:ts|sql)\n(.*?)^```$/gms)
    return [...blocks].map(([, text]) => {
      const path = /^(?:\/\/|--) (\S+\.(?:ts|sql))\n/.exec(text!)?.[1]
      if (path === undefined) throw new Error(`A block of ${page} does not name its file:\n${text}`)
      return { path, text: text! }
    })
  })
  const twice = snippets.find(({ path }, at) => snippets.findIndex((other) => other.path === path) !== at)
  if (twice !== undefined) throw new Error(`${twice.path} stands there twice`)
  return snippets
}

/**
 * Writes the guide's files into a folder of their own that looks like a repository, inside of this one so that `#heddle` resolves.
 * Beside them stand this repository's tools and test support.
 */
export function writeGuide(t: Pick<TestContext, 'after'>): string {
  const root = mkdtempSync(join(ROOT, 'test/rooms/docs/.snippets/run-'))
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

  // The pages are for applications. There is no package `heddle` here.
  for (const { path, text } of guideSnippets()) write(path, text.replaceAll("'heddle", "'#heddle"))
  for (const name of readdirSync(join(ROOT, 'src/tools'))) standIn(`src/tools/${name}/index.ts`, '{ default }')
  standIn('src/contracts/tool.ts', 'type *')
  standIn('test/support/heddle.ts', '*')
  write(
    'tsconfig.json',
    JSON.stringify({ extends: '../../../../../tsconfig.json', include: ['src', 'domains', 'test'] }),
  )
  return root
}
