import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/folder.ts'

const PRELOAD = fileURLToPath(new URL('../../../src/preload.cjs', import.meta.url))
const THREADS = 5
/** It leaves a thread of its own that goes on. */
const ADDON = `
#include <pthread.h>
#include <unistd.h>
static void *run(void *none) { for (;;) usleep(100); }
void *napi_register_module_v1(void *env, void *exports) {
  pthread_t thread;
  pthread_create(&thread, 0, run, 0);
  return exports;
}`

test('an addon of which something still runs ends no process when the last thread that has loaded it ends', (t) => {
  const folder = temporaryFolder(t)
  const source = join(folder, 'addon.c')
  const addon = join(folder, 'addon.node')
  writeFileSync(source, ADDON)
  execFileSync('cc', ['-shared', '-fPIC', '-pthread', '-o', addon, source])
  const program = `const { Worker } = require('node:worker_threads')
    const load = ${JSON.stringify(`require(${JSON.stringify(addon)})`)}
    void (async () => {
      for (let n = 0; n < ${THREADS}; n++) await new Promise((ended) => new Worker(load, { eval: true }).on('exit', ended))
      setTimeout(() => console.log('alive'), 10)
    })()`
  const run = (...args: string[]) => spawnSync(process.execPath, [...args, '--eval', program], { encoding: 'utf8' })
  assert.equal(run().signal, 'SIGSEGV', 'without it')
  const { stdout, stderr } = run('--require', PRELOAD)
  assert.deepEqual([stdout.trim(), stderr], ['alive', ''])
})
