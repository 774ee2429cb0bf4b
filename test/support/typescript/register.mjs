import { readFileSync } from 'node:fs'
import { Module, register } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/**
 * What `--import tsx` is to the service, for tests and the processes that they start: hundreds, each of which spends a third of its start in tsx.
 * Only Node 20 differs: the main thread loads modules and the others what they require, as tsx has it there, but types are stripped and kept
 * and nothing else is done. What a test starts as users do loads tsx, and everything does with TEST_LOADER=tsx.
 */
if (!process.versions.node.startsWith('20.') || process.env.TEST_LOADER === 'tsx') await import('tsx')
else {
  process.setSourceMapsEnabled(true)
  if (isMainThread) register('./strip-types.mjs', import.meta.url)
  else {
    const { strip } = await import('./strip.cjs')
    Module._extensions['.ts'] = (module, path) => module._compile(strip(path, readFileSync(path, 'utf8'), 'cjs'), path)
  }
}
