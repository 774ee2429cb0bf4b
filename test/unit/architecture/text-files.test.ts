import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readSourceGraph } from './source-graph.ts'

const ROOT = join(import.meta.dirname, '../../..')

/**
 * Files that turn the bytes of a file into text by themselves: what they read was written by the runtime, its package or the kernel, or the text
 * is only searched or shown. Whatever a person writes and the service acts upon is read by `src/preload/text-file.cjs`.
 */
const EXEMPT: Record<string, string> = {
  'domains/system/api-info.ts': 'package.json, which the settings have read before',
  'domains/system/plugins/show-requests.ts': 'package.json, which the settings have read before',
  'src/core/config/release.ts': 'what git has written, and package.json of the runtime',
  'src/core/errors/places.ts': 'shows lines of a source',
  'src/devtools/cli/command.ts': 'compares what it has written',
  'src/devtools/client/write.ts': 'a source of the runtime',
  'src/devtools/development.ts': 'looks for imports, and for changes',
  'src/devtools/scaffolding/deployment.ts': 'a file of the package',
  'src/devtools/scaffolding/templates.ts': 'a file of the package',
  'src/guardian/crash-report.cjs': 'a record of the runtime',
  'src/guardian/npm-parent.cjs': '/proc',
  'src/guardian/process-tree.cjs': '/proc',
  'src/guardian/switch.cjs': '.env, whose faults the runtime reports',
  'src/preload/text-file.cjs': 'the reader itself',
  'src/preload/typescript/stack-lines.cjs': 'shows lines of a source',
  'src/preload/typescript/strip-ahead.cjs': 'what is not loaded from it is read again',
  'src/preload/typescript/strip.cjs': 'what it has kept',
  'src/primary/events/records.ts': 'a record of the runtime',
  'src/primary/http/listening.ts': '/proc',
  'src/primary/event-store/process-identity.ts': '/proc',
  'src/primary/supervision/crash-report.ts': 'a record of the runtime',
  'src/runtime/kernel/discover.ts': 'looks for the thread of a plugin, which the loader reads',
  'src/stores/migrations/files.ts': 'the text of a migration that is refused, for its checksum',
  'src/stores/redis/client.ts': 'a script of the runtime',
}

/** `readFileSync(path, 'utf8')`, `readFile(path, { encoding: 'utf8' })`, `readFileSync(path).toString()` */
const DECODES = /\breadFile(?:Sync)?\((?:[^()]|\([^()]*\))*(?:'utf-?8'|\)\.toString\()/

test('texts that people write are read in one place, which takes UTF-8 alone', async () => {
  const { files } = await readSourceGraph(['src', 'workers', 'domains/system', 'domains/users', 'domains/examples'])
  const found: string[] = []
  for (const file of files) if (DECODES.test(await readFile(join(ROOT, file), 'utf8'))) found.push(file)
  assert.deepEqual(found.sort(), Object.keys(EXEMPT).sort())
})
