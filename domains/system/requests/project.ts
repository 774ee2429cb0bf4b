import { readFileSync } from 'node:fs'

/** The project whose plugins run, for whoever works on it on this machine. */
export interface Project {
  /** The folder to which places in stacks are relative. */
  root: string
  /** What its tests import. */
  testing: '#heddle/testing' | 'heddle/testing'
}

export function projectHere(): Project {
  return { root: process.cwd(), testing: nameHere() === 'heddle' ? '#heddle/testing' : 'heddle/testing' }
}

function nameHere(): unknown {
  try {
    return (JSON.parse(readFileSync('package.json', 'utf8')) as { name?: unknown }).name
  } catch {
    // Started in another folder: not in the repository.
    return null
  }
}
