// `heddle new tool`.
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError } from '../../core/config/command-line.ts'
import { shown } from '../../core/errors/places.ts'
import { findTools, toolNameOf } from '../../runtime/kernel/discover.ts'
import { pascal } from '../words.ts'
import { checkKebab, snake, words } from './names.ts'
import { filled, type Scaffold } from './templates.ts'
import { importPath, testFile, type Workplace } from './workplace.ts'

const IS_PACKAGE = import.meta.url.endsWith('.js')
const CONTRACT = fileURLToPath(new URL('../../contracts/tool.ts', import.meta.url))

/** `npm run new -- tool s3`: a client of another server, with its contract, its README and its test. */
export function scaffoldTool(workplace: Workplace, folderName: string): Scaffold {
  checkKebab('A tool', folderName, 's3')
  const name = snake(folderName)
  // A package is not changed: the application has a folder of its own.
  const folder = join(IS_PACKAGE ? join(workplace.root, 'tools') : workplace.toolsDir, folderName)
  refuseTaken(workplace, folder, name)
  const file = join(folder, 'index.ts')
  const test = testFile(workplace, 'tools', folderName)
  const names = {
    name,
    title: words(folderName),
    Contract: pascal(folderName),
    variable: `${name.toUpperCase()}_URL`,
    contract: IS_PACKAGE ? 'heddle' : importPath(file, CONTRACT),
  }
  return {
    files: [
      { path: file, text: filled('tool/index.ts', names) },
      { path: join(folder, 'README.md'), text: filled('tool/README.md', names) },
      { path: test, text: filled('tool/test.ts', names) },
    ],
    next: [
      `npm test tools/${folderName}    # its test`,
      'npm run tools           # lists it',
      `constructor({ ${name} }: Tools)    # how a plugin asks for it`,
      `${names.variable}=http://127.0.0.1:9000 npm start`,
    ],
  }
}

/** A tool may have several implementations, of which one is active. This command makes new tools alone, so the name must be free. */
function refuseTaken({ toolsDir }: Workplace, folder: string, name: string): void {
  const extras = join(dirname(toolsDir), 'extras')
  const all = [...findTools(toolsDir), ...(existsSync(extras) ? findTools(extras) : [])]
  const twin = all.find((each) => basename(each.path) === basename(folder) || toolNameOf(each) === name)
  if (twin === undefined) return
  throw new CommandError(`There is a tool ${name} already: ${shown(twin.path)}`)
}
