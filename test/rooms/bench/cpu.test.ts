import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { machineCpuUs, processCpuUs, residentBytes } from '../../../bench/cpu.ts'

const LINUX_ONLY = { skip: process.platform !== 'linux' ? 'reads /proc' : false }
/** Two readings, each rounded to 10 ms twice, and the scheduler's own grain. */
const TOLERANCE_US = 50_000

function burn(milliseconds: number): void {
  const untilMs = performance.now() + milliseconds
  while (performance.now() < untilMs);
}

test('CPU time of a process agrees with what it says itself', LINUX_ONLY, () => {
  const before = { proc: processCpuUs(process.pid), own: process.cpuUsage(), machine: machineCpuUs() }
  burn(250)
  const own = process.cpuUsage(before.own)
  const procUs = processCpuUs(process.pid) - before.proc
  assert.ok(Math.abs(procUs - own.user - own.system) < TOLERANCE_US, `${procUs} µs, itself ${own.user + own.system} µs`)
  assert.ok(machineCpuUs() - before.machine > procUs - TOLERANCE_US, 'the machine has done at least that')
})

test('CPU time includes the threads of a process, also those that have ended', LINUX_ONLY, async () => {
  const beforeUs = processCpuUs(process.pid)
  // Until the process has used so much: a thread that has to wait for its core is not done sooner.
  const source = `
    const usedUs = () => { const { user, system } = process.cpuUsage(); return user + system }
    const endUs = usedUs() + 200_000
    while (usedUs() < endUs);`
  await new Promise((resolve, reject) => new Worker(source, { eval: true }).once('error', reject).once('exit', resolve))
  assert.ok(processCpuUs(process.pid) - beforeUs > 200_000 - TOLERANCE_US)
})

test('resident memory agrees with what the process says itself', LINUX_ONLY, () => {
  const ratio = residentBytes(process.pid) / process.memoryUsage.rss()
  assert.ok(ratio > 0.9 && ratio < 1.1, `ratio ${ratio}`)
})
