import { hash, verify } from '@node-rs/argon2'

export default () => async () => verify(await hash('a password', { memoryCost: 8192 }), 'a password')
