import argon2 from 'argon2'

export default () => async () => argon2.verify(await argon2.hash('a password', { memoryCost: 8192 }), 'a password')
