//! All chance of a simulation comes from one number. SplitMix64: well spread, and the same
//! everywhere.

pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not begin alike.
        let mut draw = Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5851_f42d_4c95_7f2d);
        draw.next();
        draw
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        let at = usize::try_from(self.below(of.len() as u64)).expect("small");
        of[at]
    }
}
