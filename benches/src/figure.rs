//! A figure: what was measured of whom, and whether it reaches its aims.

/// A figure of the table.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) aims: Vec<Aim>,
}

/// What one contender came to.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) who: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The most memory it had.
    pub(crate) peak_mib: Option<f64>,
}

/// Something to be reached.
#[derive(Debug)]
pub(crate) struct Aim {
    pub(crate) what: &'static str,
    pub(crate) measured: f64,
    pub(crate) bound: Bound,
    pub(crate) unit: &'static str,
}

/// Which side is good.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    pub(crate) fn is_reached(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.measured <= limit,
            Bound::AtLeast(limit) => self.measured >= limit,
        }
    }
}
