import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from './sources.ts'

/** One Markdown page of the repository. */
export interface Page {
  /** From the root of the repository. */
  path: string
  text: string
  /** Without its fenced blocks. */
  prose: string
  /** Fenced blocks and code spans. */
  code: string[]
  codeSpans: string[]
  /** Names of its headings, as a link has them behind `#`. */
  anchors: Set<string>
}

const FENCE = /^( *)(```+)[^`\n]*\n(.*?)^\1\2 *$/gms

let tracked: string[] | undefined
/** Every file that is checked in, or could be, from the root. */
export function trackedFiles(): string[] {
  tracked ??= execFileSync('git', ['ls-files', '-coz', '--exclude-standard', '--deduplicate'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\0')
    .filter(Boolean)
  return tracked
}

export function trackedPages(): Page[] {
  return trackedFiles()
    .filter((path) => path.endsWith('.md'))
    .map((path) => readPage(path, readFileSync(join(ROOT, path), 'utf8')))
}

export function readPage(path: string, text: string): Page {
  const prose = text.replace(FENCE, '')
  const codeSpans = [...prose.matchAll(/(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)/gs)].map(([, , span]) => span!.trim())
  const blocks = [...text.matchAll(FENCE)].map(([, , , block]) => block!)
  return { path, text, prose, codeSpans, code: [...blocks, ...codeSpans], anchors: anchorsOf(prose) }
}

/** Links of a page that lead into the repository: the file that each means, from the root, and the anchor or ''. */
export function linksOf({ path, prose }: Page): { link: string; file: string; anchor: string }[] {
  const withoutCode = prose.replace(/(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)/gs, 'code')
  return [...withoutCode.matchAll(/\]\(<?([^)\s>]+)>?\)|\bsrc(?:set)?="([^"]+)"/g)]
    .map(([, link, picture]) => (link ?? picture)!)
    .filter((link) => !/^[a-z]+:/i.test(link))
    .map((link) => {
      const [target, anchor = ''] = link.split('#') as [string, string?]
      return { link, file: target === '' ? path : join(dirname(path), target).replace(/\/$/, ''), anchor }
    })
}

/** As GitHub makes them: lower case, without punctuation, blanks as hyphens; one that comes again is numbered. */
function anchorsOf(prose: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading] of prose.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const shown = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    const name = shown
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-')
    let unique = name
    for (let n = 1; anchors.has(unique); n++) unique = `${name}-${n}`
    anchors.add(unique)
  }
  return anchors
}
